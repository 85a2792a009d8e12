"""What is appended is there, in order, and as it was given."""

import hashlib
import json
import stat
from datetime import UTC, datetime, timedelta

import pytest

from lrp4rag.guard.audit import AuditLog
from lrp4rag.guard.audit.entry import LARGEST, canonical
from lrp4rag.util.errors import InputError, LRP4RAGError
from tests.guard.audit.conftest import TEXTS, decision


def test_entries_are_chained(log):
    first, second = log.append(decision(1)), log.append({**decision(2), "large": 1e16})
    assert (first.sequence, second.sequence) == (1, 2)
    assert first.previous == "0" * 64
    assert second.previous == first.hash
    content = {"sequence": 2, "time": second.time, "previous": first.hash, "record": second.record}
    assert second.hash == hashlib.sha256(canonical(content)).hexdigest()
    assert abs(datetime.fromisoformat(second.time) - datetime.now(UTC)) < timedelta(minutes=1)
    assert log.get("d2") == second
    assert log.get("d3") is None
    assert [*log.entries()] == [first, second]
    assert second.kind == "decision"


def test_the_last_entries_of_some_kinds_are_told_the_newest_first(log):
    for number in range(1, 6):
        log.append({**decision(number), "kind": "answer" if number % 2 else "sentence"})
    assert [one.id for one in log.latest(("answer",))] == ["d5", "d3", "d1"]
    assert [one.id for one in log.latest(("answer", "sentence"), limit=2)] == ["d5", "d4"]
    assert [one.id for one in log.latest(("answer",), before=5)] == ["d3", "d1"]
    assert log.latest(()) == []


def test_texts_are_kept_beside_the_record(log):
    entry = log.append(decision(1), TEXTS)
    assert set(entry.record["texts"]) == set(TEXTS)
    assert log.texts("d1") == TEXTS
    assert log.texts("d2") == {}
    again = log.append(decision(2), TEXTS)
    assert again.record["texts"]["question"] != entry.record["texts"]["question"]  # salted
    assert log.verify().whole


def test_texts_are_not_kept_unless_asked_for(tmp_path):
    with AuditLog.open(tmp_path / "plain.db") as log:
        assert "texts" not in log.append(decision(1), TEXTS).record
        assert log.texts("d1") == {}
    assert b"lodie" not in (tmp_path / "plain.db").read_bytes()


@pytest.mark.parametrize(
    ("record", "field"),
    [
        ({}, "id"),
        ({"id": 5}, "id"),
        ({"id": "x" * 201}, "id"),
        ({"id": "a\0"}, "id"),
        ({"id": "a", "kind": None}, "kind"),
        ({"id": "a", "kind": "erasure"}, "kind"),
        ({"id": "a", "texts": {}}, "texts"),
        ({"id": "a", "score": float("nan")}, "record"),
        ({"id": "a", "long": "x" * LARGEST}, "record"),
        ([], "record"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_no_record_is_refused(log, record, field):
    with pytest.raises(InputError) as caught:
        log.append(record)
    assert caught.value.field == field
    assert log.verify().entries == 0


@pytest.mark.parametrize("texts", [{"": "a"}, {"a": 5}, {"a": "\ud800"}, {"x" * 201: "a"}], ids=str)
def test_what_is_no_text_is_refused(log, texts):
    with pytest.raises(InputError):
        log.append(decision(1), texts)
    assert log.get("d1") is None


def test_an_id_is_used_once(log):
    log.append(decision(1), TEXTS)
    with pytest.raises(InputError, match="this id already"):
        log.append(decision(1))
    assert log.append(decision(2)).sequence == 2
    assert log.verify().whole


def test_entries_of_a_part(log):
    entries = [log.append(decision(number)) for number in range(201)]  # pages of 100
    assert [*log.entries()] == entries
    assert [*log.entries(after=190)] == entries[190:]
    assert [*log.entries(since=datetime.fromisoformat(entries[120].time))] == entries[120:]
    with pytest.raises(InputError, match="time zone"):
        next(log.entries(since=datetime(2026, 1, 1)))
    assert log.verify().checkpoints == 2  # one every 100


def test_an_export_can_be_verified_by_itself(log, tmp_path):
    for number in range(5):
        log.append({**decision(number), "x": 1e16, "ü": "\u2028"}, TEXTS)
    assert log.export(tmp_path / "log.jsonl") == 5
    previous = "0" * 64
    for line in (tmp_path / "log.jsonl").read_bytes().splitlines():
        entry = json.loads(line, parse_int=float)
        stated = entry.pop("hash")
        assert hashlib.sha256(canonical(entry)).hexdigest() == stated
        assert entry["previous"] == previous
        previous = stated
    assert b"lodie" not in (tmp_path / "log.jsonl").read_bytes()
    assert log.verify().head == previous


def test_the_file_is_its_owners_only(log, tmp_path):
    log.append(decision(1))
    files = [*tmp_path.glob("audit.db*")]
    assert len(files) == 3  # the write-ahead log as well
    assert {stat.S_IMODE(one.stat().st_mode) for one in files} == {0o600}


def test_a_closed_log_goes_on_when_opened_again(tmp_path, key):
    for number in range(3):
        with AuditLog.open(tmp_path / "a b?%20.db", key=key) as log:
            assert log.append(decision(number)).sequence == number + 1
        log.close()  # again does nothing
    with AuditLog.open(tmp_path / "a b?%20.db", read_only=True) as log:
        found = log.verify()
        assert (found.whole, found.entries, found.checkpoints, found.unsigned) == (True, 3, 3, 0)
        for write in (lambda: log.append(decision(9)), lambda: log.erase("d1"), log.checkpoint):
            with pytest.raises(LRP4RAGError):
                write()
