"""No attack gets text out of a stream before it is judged."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from benchmarks.service.client import Seen
from benchmarks.service.streams import TEXTS, leaked
from lrp4rag.guard.audit import AuditLog
from lrp4rag.guard.redteam import load_cases
from lrp4rag.guard.redteam.cases import ATTACKS
from tests.guard.service.scripted_upstream import Script, events


@pytest.mark.parametrize(
    ("first", "claims", "expected"),
    [(0, {}, {"serve", "withhold"}), (3, {"most": None}, {"serve", "mark", "escalate", "withhold"})],
)
def test_every_attack_is_held_until_it_is_judged(
    start, script: Script, tmp_path: Path, first: int, claims: dict[str, None], expected: set[str]
) -> None:
    """Each answer comes in pieces that are cut at random, through the tiny reader's random verdicts. Most of
    what is attacked with looks unsupported to it: that most is withheld hides what is escalated."""
    cases, random = load_cases(kinds=[*ATTACKS])[first::6], Random(0)
    seen = []
    with start(policy={"texts": TEXTS, "claims": claims}) as client:
        for number, one in enumerate(cases):
            cuts = sorted(random.choices(range(len(one.response) + 1), k=8))
            parts = [one.response[a:b] for a, b in zip([0, *cuts], [*cuts, None], strict=True)]
            script.stream, script.seed = events(*parts), number
            body = {
                "model": "any",
                "stream": True,
                "messages": [{"role": "user", "content": one.question}],
                "lrp4rag": {"passages": one.model_dump(mode="json")["passages"]},
            }
            with client.stream("POST", "/v1/chat/completions", json=body) as reply:
                assert reply.status_code == 200, reply.read()
                lines = [line for line in reply.iter_lines() if line.startswith("data: {")]
            chunks = [json.loads(line.removeprefix("data: ")) for line in lines]
            found = Seen(number)
            found.chunks = [
                (chunk["choices"][0]["delta"].get("content", ""), 0.0, chunk.get("lrp4rag", {}))
                for chunk in chunks
                if chunk.get("choices")
            ]
            seen.append(found)
    with AuditLog.open(f"sqlite:///{tmp_path / 'audit.db'}", create=False) as log:
        assert not log.verify().problems
        records = {entry.id: entry.record for entry in log.entries()}
    unjudged = {one.id: leaked(found, one.response, records) for one, found in zip(cases, seen, strict=True)}
    assert {id: lost for id, lost in unjudged.items() if lost != (0, 0)} == {}
    actions = {one["action"] for one in records.values() if one["kind"] == "sentence"}
    assert expected <= actions
