"""Which answers are on the list, why, and in which order."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lrp4rag.guard.audit import AuditLog
from lrp4rag.guard.monitoring.review import ReviewList, record, render, review_list, table
from lrp4rag.util.errors import InputError
from tests.guard.monitoring.logs import EARLY, LATE, NOW, TEXTS, records, spread, write

SERVED = {"action": "serve", "reason": "grounded", "probability": 0.1}
Listed = Callable[..., ReviewList]


def answer(id: str, **more: Any) -> dict[str, Any]:
    return records(1, 0)[0] | SERVED | {"id": id} | more


@pytest.fixture
def listed(tmp_path: Path) -> Listed:
    """The list of a log with these records, in the last week."""

    def make(some: list[dict[str, Any]], texts: dict[str, str] | None = None, **options: Any) -> ReviewList:
        path = tmp_path / "audit.db"
        path.unlink(missing_ok=True)
        write(path, spread(LATE, some), texts=texts)
        with AuditLog.open(path, read_only=True) as log:
            return review_list(log, LATE, **options)

    return make


def said(of: str, word: str, kind: str = "feedback") -> dict[str, Any]:
    return {"id": f"{kind}-{of}-{word}", "kind": kind, "of": of, "said": word}


def test_the_gravest_come_first_and_each_says_why(listed: Listed) -> None:
    found = listed(
        [
            answer("fine"),
            answer("marked", action="mark", reason="suspect", probability=0.4),
            answer("flagged", probability=0.95),
            answer("odd", reason="unlike training data"),
            answer("conflict", action="disclose", reason="conflict"),
            answer("withheld", action="withhold", reason="knowledge gap", probability=0.7),
            answer("unjudged", action="withhold", reason="unavailable", probability=None),
            answer("complaint"),
            said("complaint", "hallucinated"),
            answer("too strict", action="withhold", reason="insufficient evidence"),
            said("too strict", "grounded"),
            answer("waits", action="escalate", reason="misattributed citation"),
            answer("praised"),
            said("praised", "grounded"),
        ]
    )
    assert [(one.answer.id, one.why) for one in found.items] == [
        ("waits", "escalated"),
        ("complaint", "disputed"),
        ("too strict", "disputed"),
        ("unjudged", "withheld"),
        ("withheld", "withheld"),
        ("flagged", "doubtful"),
        ("marked", "doubtful"),
        ("odd", "doubtful"),
        ("conflict", "doubtful"),
        ("fine", "sampled"),
        ("praised", "sampled"),
    ]
    words = {one.answer.id: one.words for one in found.items}
    for id, part in {
        "waits": "reviewer: misattributed citation",
        "complaint": "a user says",
        "flagged": "from 0.90 on",
        "odd": "unlike training data",
        "fine": "2 of 2",
    }.items():
        assert part in words[id]


def test_what_a_reviewer_has_spoken_on_is_skipped(listed: Listed) -> None:
    waits = answer("waits", action="escalate")
    found = listed([waits, said("waits", "grounded", "review"), said("waits", "hallucinated"), answer("a")])
    assert [one.answer.id for one in found.items] == ["a"]
    assert (found.answers, found.reviewed) == (2, 1)
    everything = listed([waits, said("waits", "unclear", "review")])
    assert (everything.items, everything.reviewed) == ((), 1)


def test_how_many_are_listed(listed: Listed) -> None:
    some = [answer(f"w{k}", action="withhold", probability=k / 10) for k in range(5)]
    some += [answer(f"m{k}", action="mark") for k in range(3)]
    found = listed([*some, *(answer(f"s{k}") for k in range(30))], limit=4, sample=3)
    assert [one.answer.id for one in found.items[:4]] == ["w4", "w3", "w2", "w1"]
    assert found.of == {"escalated": 0, "disputed": 0, "withheld": 5, "doubtful": 3, "sampled": 30}
    assert [found.shown(why) for why in found.of] == [0, 0, 4, 0, 3]
    assert listed(some, limit=0).items == ()


def test_the_sample_of_a_period_is_the_same_again(tmp_path: Path) -> None:
    path, some = tmp_path / "audit.db", spread(LATE, [answer(f"s{k}") for k in range(30)])
    write(path, some)

    def drawn() -> list[str]:
        with AuditLog.open(path, read_only=True) as log:
            return [item.answer.id for item in review_list(log, LATE, sample=5).items]

    first = drawn()
    assert first == drawn() == sorted(first, key=lambda id: int(id[1:]))
    write(path, [(NOW - timedelta(hours=1), answer("new"))])
    assert len(set(first) & set(drawn())) >= 4  # they displace some of the sample only


def test_only_the_period_counts(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    late = said("a", "hallucinated", "review")
    write(path, [*spread(EARLY, [answer("a"), answer("b")]), (NOW, late)])
    with AuditLog.open(path, read_only=True) as log:
        found = review_list(log, EARLY)
        assert ([one.answer.id for one in found.items], found.reviewed) == (["b"], 1), "a later word counts"
        with pytest.raises(InputError, match="holds no answers"):
            review_list(log, LATE)


def test_texts_are_there_where_the_log_keeps_them(listed: Listed) -> None:
    one = record(listed([answer("a")], TEXTS))["items"][0]
    assert (one["question"], one["passages"], one["response"]) == (
        TEXTS["question"],
        ["Ten days."],
        TEXTS["response"],
    )
    bare = record(listed([answer("a")]))["items"][0]
    assert bare["question"] is bare["passages"] is bare["response"] is None


def test_a_table_for_people(listed: Listed) -> None:
    found = listed([answer("=1+1", action="withhold", reason="+cmd"), answer("b")], TEXTS)
    first, second = csv.DictReader(io.StringIO(table(found)))
    assert first["id"] == "'=1+1"
    assert first["response"] == "'=1+1 It is ten days."
    assert "\x1b" not in first["question"]
    assert (first["why"], second["why"], second["said"]) == ("withheld", "sampled", "")


def opinion(of: str, grounded: bool | None, chosen: str = "sampled") -> dict[str, Any]:
    return {"id": f"opinion-{of}", "kind": "opinion", "of": of, "chosen": chosen, "grounded": grounded}


def test_what_the_judge_disputes_is_listed_and_how_often_it_agrees(listed: Listed) -> None:
    found = listed(
        [
            answer("agreed"),
            opinion("agreed", grounded=True),
            answer("doubted"),
            opinion("doubted", grounded=False),
            answer("freed", action="withhold", reason="insufficient evidence", probability=0.95),
            opinion("freed", grounded=True),
            answer("silent"),
            opinion("silent", grounded=None),
            answer("waiting", action="escalate", reason="suspect", probability=0.95),
            opinion("waiting", grounded=False, chosen="escalated"),
            answer("complaint", probability=0.3),
            opinion("complaint", grounded=True),
            said("complaint", "hallucinated"),
        ],
        sample=0,
    )
    assert [(one.answer.id, one.why) for one in found.items] == [
        ("waiting", "escalated"),
        ("freed", "disputed"),
        ("complaint", "disputed"),
        ("doubted", "disputed"),
    ]
    parts = (
        "suspect; the judge",
        "the judge finds it right",
        "a user says",
        "the judge finds it hallucinated",
    )
    assert all(part in item.words for part, item in zip(parts, found.items, strict=True))
    told = record(found)["agreement"]
    assert (told["answers"], told["share"], told["unanswered"]) == (4, 0.5, 1)
    stream = io.StringIO()
    Console(width=200, file=stream).print(render(found))
    assert "agree on 50% of 4" in stream.getvalue()
