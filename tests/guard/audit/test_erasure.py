"""Texts are erased for good, and the chain stays whole."""

from datetime import UTC, datetime, timedelta

import pytest

from lrp4rag.util.errors import InputError
from tests.guard.audit.conftest import decision

SECRET = {"question": "the-secret-question", "response": "the-secret-response"}


def on_disk(folder):
    return b"".join(path.read_bytes() for path in folder.glob("audit.db*"))


def test_erased_texts_are_gone(log, tmp_path):
    log.append(decision(1), SECRET)
    log.append(decision(2), {"question": "another"})
    assert b"the-secret" in on_disk(tmp_path)
    assert log.erase("d1") == 2
    assert b"the-secret" not in on_disk(tmp_path)
    assert log.texts("d1") == {}
    assert log.texts("d2") == {"question": "another"}
    last = [*log.entries()][-1]
    assert (last.kind, last.record["of"]) == ("erasure", "d1")
    assert log.verify().whole


def test_erasing_twice_is_recorded_once(log):
    log.append(decision(1), SECRET)
    log.append(decision(2))
    assert [log.erase("d1"), log.erase("d1"), log.erase("d2")] == [2, 0, 0]
    assert log.verify().entries == 3
    with pytest.raises(InputError, match="no entry"):
        log.erase("d9")


def test_old_texts_expire(log, tmp_path):
    log.append(decision(1), SECRET)
    newer = log.append(decision(2), {"question": "another"})
    assert log.expire(datetime.now(UTC) - timedelta(days=1)) == 0
    assert log.expire(datetime.fromisoformat(newer.time)) == 2
    assert b"the-secret" not in on_disk(tmp_path)
    assert log.texts("d2") == {"question": "another"}
    last = [*log.entries()][-1]
    assert (last.kind, last.record["before"]) == ("expiry", newer.time)
    found = log.verify()
    assert (found.whole, found.entries) == (True, 3)
    with pytest.raises(InputError, match="time zone"):
        log.expire(datetime(2026, 1, 1))
