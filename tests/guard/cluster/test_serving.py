"""Replicas on a real cluster of one machine: they share the work and one chain, and one may be killed."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from click.testing import CliRunner

from lrp4rag.cli import main
from lrp4rag.guard.audit import AuditLog
from lrp4rag.guard.cluster.serving import Share, log_resources, replica_settings, serving, share_of
from lrp4rag.guard.service.settings import Settings
from lrp4rag.util.errors import InputError
from tests.guard.cluster import standing_in
from tests.guard.cluster.local import cluster_of
from tests.guard.service.conftest import PASSAGES, QUESTION, asked, listening
from tests.guard.service.scripted_upstream import Script, events
from tests.guard.service.scripted_upstream import serving as scripted

SENTENCES = ["It is 31 metres tall. ", "Fish is sold nearby. ", "It is so. ", "It is tall."]


@pytest.mark.parametrize(
    ("nodes", "replicas", "device", "share"),
    [
        ([{"CPU": 2.0}], 2, None, Share(2, 1, gpu=False)),
        ([{"CPU": 16.0}], 3, None, Share(3, 5, gpu=False)),
        ([{"CPU": 4.0}, {"CPU": 16.0}], 2, "cpu", Share(2, 8, gpu=False)),
        ([{"CPU": 8.0}, {"memory": 1.0}], 1, None, Share(1, 8, gpu=False)),
        ([{"CPU": 8.0, "GPU": 2.0}], 2, None, Share(2, 1, gpu=True)),
        ([{"CPU": 8.0, "GPU": 1.0}], 2, None, Share(2, 4, gpu=False)),
        ([{"CPU": 8.0, "GPU": 1.0}, {"CPU": 8.0, "GPU": 1.0}], 2, "cuda:1", Share(2, 1, gpu=True)),
        ([{"CPU": 8.0, "GPU": 2.0}], 2, "cpu", Share(2, 4, gpu=False)),
    ],
)
def test_what_a_replica_has_of_the_cluster(
    nodes: list[dict[str, float]], replicas: int, device: str | None, share: Share
) -> None:
    assert share_of(nodes, replicas, device) == share


@pytest.mark.parametrize(
    ("replicas", "device", "words"), [(3, None, "the cluster has 2"), (1, "cuda", "has 0")]
)
def test_a_cluster_that_is_too_small_is_told(replicas: int, device: str | None, words: str) -> None:
    with pytest.raises(InputError, match=words):
        share_of([{"CPU": 2.0}], replicas, device)


def test_replicas_with_a_log_in_a_file_stay_on_its_machine() -> None:
    machine = {"CPU": 2.0, "node:10.0.0.1": 1.0, "node:__internal_head__": 1.0}
    assert log_resources(Settings.load(None), [machine]) == {"node:10.0.0.1": 0.001}
    with pytest.raises(InputError, match="this cluster has 2"):
        log_resources(Settings.load(None), [machine, machine])
    shared = Settings.load(None, audit="postgresql+psycopg://a@b/c")
    assert log_resources(shared, [machine] * 5) == {}


def test_what_replicas_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    names = {"detector": "mine", "reader": "some/name", "comparer": "c.json"}
    given = Settings.load(None, audit="a.db", audit_key="a.key", **names)
    found = replica_settings(given, Share(2, 1, gpu=True))
    assert found.audit == f"sqlite:///{tmp_path}/a.db"
    assert (found.audit_key, found.device) == (tmp_path / "a.key", "cuda")
    assert (found.detector, found.reader) == (str(tmp_path / "mine"), "some/name")
    assert found.comparer == tmp_path / "c.json"
    secret = Settings.load(None, audit="postgresql+psycopg://a:hunter2@b/c")
    assert replica_settings(secret, Share(2, 1, gpu=False)).audit == secret.audit


def test_without_ray_the_command_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "ray", None)
    done = CliRunner().invoke(main, ["serve", "--demo", "--ray"])
    assert done.exit_code == 2
    assert "pip install 'lrp4rag[ray,serve]'" in done.output


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with cluster_of(2) as found:
        yield found


@pytest.fixture(scope="module")
def script() -> Script:
    return Script(events(*SENTENCES), longest=400)


@pytest.fixture(scope="module")
def given(
    script: Script, reader_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Settings]:
    folder = tmp_path_factory.mktemp("replicas")
    with scripted(script) as upstream:
        yield Settings.load(
            None,
            open=True,
            upstream=upstream,
            reader=str(reader_folder),
            audit=f"sqlite:///{folder}/audit.db",
            audit_key=folder / "key",
            policy={"abstained": "mark"},
        )


@pytest.fixture(scope="module")
def server(cluster: Any, given: Settings) -> Iterator[str]:
    with (
        serving(given, replicas=2, address=cluster.address, load=standing_in.load) as (app, share),
        listening(app) as url,
    ):
        assert share == Share(2, 1, gpu=False)
        yield url.removesuffix("/v1")


def replicas(url: str) -> set[str]:
    """The names of those that are there."""
    lines = httpx.get(f"{url}/metrics", timeout=30).text.splitlines()
    return {line.split('"')[1] for line in lines if line.startswith("lrp4rag_most_waiting{")}


def decisions(url: str) -> dict[str, float]:
    """How many each replica has made."""
    found: Counter[str] = Counter()
    for line in httpx.get(f"{url}/metrics", timeout=30).text.splitlines():
        if line.startswith("lrp4rag_decisions_total{"):
            found[line.split('replica="')[1].split('"')[0]] += float(line.rsplit(" ", 1)[1])
    return found


def replica_processes() -> list[psutil.Process]:
    """Of this test's cluster, by the names that Ray gives them."""
    below = psutil.Process().children(recursive=True)
    return [one for one in below if "servereplica" in "".join(one.cmdline()).lower().replace("_", "")]


class Load:
    """Clients that stream and judge until they are told to end, and what they got."""

    def __init__(self, url: str, clients: int) -> None:
        self.url, self.statuses = url, Counter[int]()
        self.broken: list[str] = []
        self.told: set[str] = set()
        self.cut = self.unjudged = 0
        self._end = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(k,)) for k in range(clients)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join(60)

    def _work(self, number: int) -> None:
        with httpx.Client(base_url=self.url, timeout=60) as client:
            while not self._end.is_set():
                try:
                    (self._stream if number % 2 else self._judge)(client)
                except httpx.HTTPError as error:
                    self.broken.append(type(error).__name__)

    def _judge(self, client: httpx.Client) -> None:
        body = {"question": QUESTION, "passages": PASSAGES, "response": "".join(SENTENCES)}
        reply = client.post("/v1/judge", json=body)
        self.statuses[reply.status_code] += 1
        if reply.status_code == 200:
            self.told.add(reply.json()["decision"]["id"])

    def _stream(self, client: httpx.Client) -> None:
        done = failed = False
        with client.stream("POST", "/v1/chat/completions", json=asked(stream=True)) as reply:
            self.statuses[reply.status_code] += 1
            for line in reply.iter_lines() if reply.status_code == 200 else ():
                done = done or line == "data: [DONE]"
                chunk = json.loads(line.removeprefix("data: ")) if line.startswith("data: {") else {}
                failed = failed or "error" in chunk
                for choice in chunk.get("choices", ()):
                    decided = chunk.get("lrp4rag", {}).get("id")
                    self.unjudged += bool(choice["delta"].get("content", "").strip() and decided is None)
                    self.told |= {decided} - {None}
        if reply.status_code == 200:
            assert done != failed
            self.cut += failed


def test_replicas_share_the_work_and_one_of_them_may_be_killed(server: str, given: Settings) -> None:
    before = replicas(server)
    assert len(before) == 2
    assert httpx.get(f"{server}/readyz", timeout=30).status_code == 200
    with Load(server, 6) as load:
        time.sleep(3)
        made = decisions(server)
        replica_processes()[0].kill()
        time.sleep(4)
    assert all(made[name] > 0 for name in before), "both have judged"
    assert load.broken == []
    assert set(load.statuses) <= {200, 503}
    assert load.statuses[200] > 10
    assert load.statuses[503] + load.cut > 0
    assert load.unjudged == 0
    with AuditLog.open(given.audit, key=given.audit_key) as log:
        assert log.verify().problems == []
        known = {entry.id for entry in log.entries()}
    assert load.told <= known
    until = time.monotonic() + 30
    while len(replicas(server)) < 2 and time.monotonic() < until:
        time.sleep(0.3)
    assert len(replicas(server)) == 2, "another is there"
    assert replicas(server) != before
