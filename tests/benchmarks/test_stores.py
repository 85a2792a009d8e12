"""`benchmarks.stores`: two stores of the same responses are compared part by part."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.stores import main
from lrp4rag.features.parts import PROMPT
from lrp4rag.training.store import Store
from tests.experiments.paper.stores import examples, store


@pytest.fixture
def stores(tmp_path: Path) -> tuple[Path, Path]:
    rows = examples(4)
    return store(tmp_path / "a", rows, parts=(PROMPT,)), store(tmp_path / "b", rows[:5], parts=(PROMPT,))


def run(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(main, [*map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.output


def test_responses_that_both_have_are_compared_and_differences_are_seen(stores) -> None:
    first, second = stores
    found = json.loads(run(first, second, "--json"))["parts"]
    assert {name: one["responses"] for name, one in found.items()} == {"R_response": 5, "R_prompt": 5}
    other = Store.existing(second)
    changed = next(iter(other.examples()))
    values = other.arrays(changed, PROMPT, ["prompt"])["prompt"]
    other.path(changed, PROMPT).unlink()
    other.write_arrays(changed, PROMPT, {"prompt": -2 * values})
    after = json.loads(run(first, second, "--json"))["parts"]
    assert after["R_response"] == found["R_response"]
    assert after["R_prompt"]["correlation"]["lowest"] == pytest.approx(-1)
    assert after["R_prompt"]["difference"]["largest"] == pytest.approx(3, rel=1e-2)


def test_a_store_is_what_it_is_beside_itself(stores) -> None:
    first, _ = stores
    for one in json.loads(run(first, first, "--json"))["parts"].values():
        assert one["correlation"]["lowest"] == pytest.approx(1)
        assert one["difference"]["largest"] == 0
    assert "| R_response | 8 | 1.00000 | 1.00000 | 0.000 | 0.000 |" in run(first, first)


def test_stores_without_a_response_in_common_are_refused(stores, tmp_path) -> None:
    first, _ = stores
    other = store(tmp_path / "c", examples(8)[-4:], parts=())
    assert "no relevance of the same responses" in run(first, other, code=2)
