"""Alerts and the dashboard of deploy/: what they ask for is served, and each alert fires when it should.

promtool comes with Prometheus; without it, its tests are skipped.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.guard.service.conftest import PASSAGES, QUESTION, asked
from tests.guard.service.scripted_upstream import Script, events
from tests.guard.service.test_metrics import Series, samples

ROOT = Path(__file__).parents[3]
RULES = ROOT / "deploy/prometheus/rules.yaml"
RULES_TEST = ROOT / "deploy/prometheus/rules_test.yaml"
DASHBOARD = ROOT / "deploy/grafana/lrp4rag.json"
GIVEN_BY_PROMETHEUS = {"job", "instance"}
MATCHES = {
    "=": lambda value, wanted: value == wanted,
    "!=": lambda value, wanted: value != wanted,
    "=~": lambda value, wanted: re.fullmatch(wanted, value) is not None,
    "!~": lambda value, wanted: re.fullmatch(wanted, value) is None,
}


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def alerts() -> dict[str, dict[str, Any]]:
    return {rule["alert"]: rule for rule in rules() if "alert" in rule}


def dashboard() -> dict[str, Any]:
    found = json.loads(DASHBOARD.read_text())
    assert isinstance(found, dict)
    return found


def panels() -> list[dict[str, Any]]:
    return [one for one in dashboard()["panels"] if one["type"] != "row"]


def queries() -> list[str]:
    return [target["expr"] for panel in panels() for target in panel["targets"]]


# --- what is asked for is served


def selectors(expression: str) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Series of ours that an expression names, with what their labels must be."""
    for name, inside in re.findall(r"(?<![\w:])(lrp4rag_\w+)(?:\{([^}]*)\})?", expression):
        found = re.findall(r'(\w+)(=~|!~|!=|=)"([^"]*)"', inside)
        yield name, [one for one in found if one[0] not in GIVEN_BY_PROMETHEUS]


def is_served(served: set[Series], name: str, matchers: list[tuple[str, str, str]]) -> bool:
    return any(
        one == name and all(MATCHES[how](dict(labels).get(label, ""), want) for label, how, want in matchers)
        for one, labels in served
    )


def missing(served: set[Series], expression: str) -> list[str]:
    """What of an expression no series answers to: names, values of labels, labels to group by."""
    found = [
        f"{name} {matchers}"
        for name, matchers in selectors(expression)
        if not is_served(served, name, matchers)
    ]
    names = {name for name, _ in selectors(expression)}
    labels = {label for name, pairs in served if name in names for label, _ in pairs} | GIVEN_BY_PROMETHEUS
    by = {one.strip() for inside in re.findall(r"\bby \(([^)]*)\)", expression) for one in inside.split(",")}
    return found + [f"by {label}" for label in by if names and label not in labels]


@pytest.fixture
def served(start, script: Script, judged: list[str]) -> set[Series]:
    """The series of a server that was asked for some of everything."""
    script.stream = events("It is 31 metres tall [1]. ", "It is WRONG.")
    body = {"question": QUESTION, "passages": PASSAGES, "response": "It is 31 metres tall."}
    with start() as client:
        id = client.post("/v1/judge", json=body).json()["decision"]["id"]
        assert client.post("/v1/chat/completions", json=asked()).status_code == 200
        client.post("/v1/retrieval/check", json={"question": QUESTION, "passages": PASSAGES})
        client.post("/v1/feedback", json={"decision": id, "said": "grounded"})
        return set(samples(client.get("/metrics").text))


def test_every_series_of_the_dashboard_and_of_the_alerts_is_served(served: set[Series]) -> None:
    expressions = [*queries(), *(rule["expr"] for rule in rules())]
    assert sum(len(list(selectors(one))) for one in expressions) > 60
    assert {one: lost for one in expressions if (lost := missing(served, one))} == {}


# --- alerts


def test_each_alert_is_tested_to_fire_and_to_be_silent() -> None:
    expected = [
        {re.findall(r'alertname="(\w+)"', one["labels"])[0] for one in test["exp_samples"]}
        for block in yaml.safe_load(RULES_TEST.read_text())["tests"]
        for test in block.get("promql_expr_test", [])
    ]
    assert set().union(*expected) == set(alerts())
    for name in alerts():
        assert any(name not in one for one in expected), name


# --- with promtool


@pytest.fixture(scope="module")
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not installed: apt-get install prometheus")
    return found


def run(*command: object, cwd: Path = ROOT) -> str:
    found = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, timeout=120, cwd=cwd
    )
    assert found.returncode == 0, found.stdout[-2000:] + found.stderr[-2000:]
    return found.stdout


def test_alerts_fire_when_they_should(promtool: str) -> None:
    run(promtool, "test", "rules", RULES_TEST.name, cwd=RULES_TEST.parent)


def test_queries_of_the_dashboard_are_prometheus_own(promtool: str, tmp_path: Path) -> None:
    variables = {"$__rate_interval": "5m", "$__range": "1d", "$job": "lrp4rag", "$instance": ".*"}
    found = [re.sub(r"\$\w+", lambda name: variables[name[0]], one) for one in queries()]
    asked_for = [{"record": f"q{number}", "expr": one} for number, one in enumerate(found)]
    path = tmp_path / "queries.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": asked_for}]}))
    assert f"{len(asked_for)} rules found" in run(promtool, "check", "rules", RULES, path)
