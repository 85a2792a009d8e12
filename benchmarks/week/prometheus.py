"""What Prometheus says of counters of the past: the rules of deploy/prometheus, and when each alert fired."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx

from benchmarks.ports import free_port
from lrp4rag.guard.service.metrics import REGISTRY
from lrp4rag.util.errors import LRP4RAGError
from lrp4rag.util.yaml_file import read_yaml

RULES = Path("deploy/prometheus/rules.yaml")
LOOKED_AT = (
    "decisions_total", "faithfulness_sum", "faithfulness_count", "fact_score_sum", "fact_score_count",
    "findings_total", "said_total", "unavailable_total", "audit_failures_total", "queue_refused_total",
)  # fmt: skip
"""Of the server's series, those that the rules read."""
STEP = timedelta(minutes=2)
_JOB = 'job="lrp4rag",instance="simulated"'
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True, slots=True)
class Firing:
    """An alert that fired, from when until when, with the value that it had then."""

    alert: str
    start: datetime
    end: datetime
    value: float


class Scrapes:
    """What /metrics had at each time, as it is read back into Prometheus."""

    def __init__(self) -> None:
        self._found: dict[str, list[tuple[float, float]]] = {}

    def add(self, moment: datetime) -> None:
        at = moment.timestamp()
        self._found.setdefault(f"up{{{_JOB}}}", []).append((at, 1.0))
        for family in REGISTRY.collect():
            for sample in family.samples:
                if sample.name.removeprefix("lrp4rag_") in LOOKED_AT:
                    labels = "".join(f',{name}="{value}"' for name, value in sample.labels.items())
                    self._found.setdefault(f"{sample.name}{{{_JOB}{labels}}}", []).append((at, sample.value))

    def lines(self) -> Iterator[str]:
        """OpenMetrics, without series that were always zero."""
        for name, points in self._found.items():
            if any(value for _, value in points):
                yield from (f"{name} {value} {at}\n" for at, value in points)
        yield "# EOF\n"


def firings(scrapes: Scrapes, start: datetime, end: datetime, folder: Path) -> list[Firing]:
    """Of every alert of the rules. Recording rules are evaluated over the past, twice: some read others.
    Raises `LRP4RAGError` where Prometheus or promtool is not installed or fails."""
    data, given = folder / "data", folder / "metrics.txt"
    with given.open("w") as file:
        file.writelines(scrapes.lines())
    _run("promtool", "tsdb", "create-blocks-from", "openmetrics", given, data)
    times = [
        f"--start={start:%Y-%m-%dT%H:%M:%SZ}",
        f"--end={end:%Y-%m-%dT%H:%M:%SZ}",
        f"--eval-interval={STEP.seconds}s",
    ]
    for _ in range(2):
        with _prometheus(folder, data) as url:
            more = folder / "more"
            _run(
                "promtool", "tsdb", "create-blocks-from", "rules", f"--url={url}", *times,
                f"--output-dir={more}", RULES,
            )  # fmt: skip
        for block in more.iterdir():
            shutil.move(block, data / block.name)
    with _prometheus(folder, data) as url:
        return sorted(_fired(url, start, end), key=lambda one: one.start)


def _fired(url: str, start: datetime, end: datetime) -> Iterator[Firing]:
    rules = [rule for group in read_yaml(RULES)["groups"] for rule in group["rules"] if "alert" in rule]
    for rule in rules:
        query = {
            "query": rule["expr"],
            "start": start.timestamp(),
            "end": end.timestamp(),
            "step": STEP.total_seconds(),
        }
        reply = httpx.get(f"{url}/api/v1/query_range", params=query, timeout=600).raise_for_status().json()
        number, unit = rule.get("for", "0m")[:-1], rule.get("for", "0m")[-1]
        waits = timedelta(**{_UNITS[unit]: int(number)})
        for series in reply["data"]["result"]:
            points = [(datetime.fromtimestamp(at, UTC), float(value)) for at, value in series["values"]]
            for run in _runs(points):
                if run[-1][0] - run[0][0] >= waits:
                    begins = next(one for one in run if one[0] - run[0][0] >= waits)
                    yield Firing(rule["alert"], begins[0], run[-1][0], begins[1])


def _runs(points: Iterable[tuple[datetime, float]]) -> list[list[tuple[datetime, float]]]:
    """Points that follow each other step by step."""
    runs: list[list[tuple[datetime, float]]] = []
    for point in points:
        if runs and point[0] - runs[-1][-1][0] <= STEP:
            runs[-1].append(point)
        else:
            runs.append([point])
    return runs


@contextmanager
def _prometheus(folder: Path, data: Path) -> Iterator[str]:
    """The address of one that serves the blocks in the folder `data`."""
    _require("prometheus")
    settings, log, address = folder / "prometheus.yml", folder / "prometheus.log", f"127.0.0.1:{free_port()}"
    settings.write_text("global: {}\n")
    command = [
        "prometheus", f"--config.file={settings}", f"--storage.tsdb.path={data}",
        f"--web.listen-address={address}", "--storage.tsdb.retention.time=100y",
        "--query.max-samples=100000000",
    ]  # fmt: skip
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        while not _is_ready(f"http://{address}/-/ready"):
            if process.poll() is not None:
                raise LRP4RAGError(f"Prometheus did not start: {log.read_text()[-500:]}")
            time.sleep(0.1)
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait()


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(url).status_code == 200
    except httpx.TransportError:
        return False


def _run(*command: str | Path) -> None:
    _require(str(command[0]))
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise LRP4RAGError(f"{' '.join(map(str, command[:4]))} failed: {done.stderr[-500:]}")


def _require(program: str) -> None:
    if shutil.which(program) is None:
        raise LRP4RAGError(f"{program} is not installed; Debian's package is called prometheus")
