"""What signed checkpoints show beyond the chain itself."""

import json

import pytest
from sqlalchemy import delete, select

from lrp4rag.guard.audit import AuditLog, Checkpoint
from lrp4rag.guard.audit.chain import add_checkpoint, open_key, open_public_key
from lrp4rag.guard.audit.database import CHECKPOINTS, ENTRIES, HEAD
from lrp4rag.guard.audit.entry import NOTHING, chained, row_of
from lrp4rag.util.errors import InputError, LRP4RAGError
from tests.guard.audit.conftest import decision


@pytest.fixture
def filled(log):
    """Ten entries; a checkpoint after the fifth and the last."""
    for number in range(10):
        log.append(decision(number))
        if number in (4, 9):
            log.checkpoint()
    return log


def said(log, **options):
    return " ".join(map(str, log.verify(**options).problems))


def rewrite(log, records):
    """What someone with the database, but without the key, can do at best."""
    previous = NOTHING
    with log._database.writing() as connection:
        connection.execute(delete(ENTRIES))
        for sequence, record in enumerate(records, start=1):
            entry = chained(sequence, previous, record)
            connection.execute(ENTRIES.insert().values(row_of(entry)))
            previous = entry.hash
        connection.execute(HEAD.update().values(entries=len(records), hash=previous))


def cut(log, after):
    """Entries are deleted, and the head is changed to fit."""
    with log._database.writing() as connection:
        connection.execute(delete(ENTRIES).where(ENTRIES.c.sequence > after))
        hash = connection.scalar(select(ENTRIES.c.hash).where(ENTRIES.c.sequence == after))
        connection.execute(HEAD.update().values(entries=after, hash=hash))


def drop_checkpoints(log, after):
    with log._database.writing() as connection:
        connection.execute(delete(CHECKPOINTS).where(CHECKPOINTS.c.number > after))
        connection.execute(HEAD.update().values(checkpoints=after))


def test_the_head_is_signed_once(filled):
    last = filled.checkpoint()
    assert last == filled.checkpoint()
    assert (last.number, last.sequence, last.signed) == (2, 10, True)
    filled.append(decision(10))
    found = filled.verify()
    assert (found.whole, found.last, found.unsigned, found.pinned) == (True, last, 1, True)


def test_a_chain_that_was_rewritten_is_found(filled):
    rewrite(filled, [{**decision(number), "score": 0} for number in range(10)])
    assert "entry 5, which" in said(filled)
    assert "entry 10, which" in said(filled)


def test_a_cut_is_found_up_to_the_last_checkpoint_in_the_log(filled):
    cut(filled, 7)
    assert "is missing" in said(filled)


def test_a_cut_with_its_checkpoints_is_found_by_one_kept_elsewhere(filled):
    kept = filled.checkpoint()
    cut(filled, 5)
    drop_checkpoints(filled, 1)
    assert filled.verify().whole  # nothing in the log can tell
    words = said(filled, checkpoint=Checkpoint.parse(kept.text))
    assert "it ends at entry 5" in words
    assert "checkpoint 2: it is missing" in words


def test_a_rewritten_chain_without_checkpoints_is_found_by_one_kept_elsewhere(filled):
    kept = filled.checkpoint()
    drop_checkpoints(filled, 0)
    rewrite(filled, [{**decision(number), "score": 0} for number in range(12)])
    assert filled.verify().whole
    assert "the chain was rewritten" in said(filled, checkpoint=kept)


def test_checkpoints_of_another_key_are_found(filled, tmp_path):
    filled.append(decision(10))
    with filled._database.writing() as connection:
        add_checkpoint(connection, open_key(tmp_path / "other"))
    assert "checkpoint 3: it is not" in said(filled)
    other = open_public_key(tmp_path / "other.pub")
    assert "checkpoint 1: it is not" in said(filled, public_key=other)
    assert filled.verify(public_key=other).last.number == 3


def test_a_log_signed_anew_by_another_key_needs_the_key_to_be_found(filled, tmp_path):
    filled.close()  # an open one refuses to sign it then
    drop_checkpoints(filled, 0)
    rewrite(filled, [decision(1)])
    with filled._database.writing() as connection:
        add_checkpoint(connection, open_key(tmp_path / "other"))
    with AuditLog.open(tmp_path / "audit.db", read_only=True) as log:
        found = log.verify()
        assert found.whole
        assert not found.pinned
        assert "checkpoint 1: it is not" in said(log, public_key=open_public_key(tmp_path / "audit.key"))


def test_a_checkpoint_of_another_log_is_told(filled, tmp_path):
    with AuditLog.open(tmp_path / "other.db", key=tmp_path / "other") as log:
        log.append(decision(1))
        kept = log.checkpoint()
    assert "not of the log" in said(filled, checkpoint=kept)


def test_what_is_no_checkpoint_is_refused(filled):
    good = filled.checkpoint().model_dump()
    assert Checkpoint.parse(json.dumps(good, indent=2)).model_dump() == good
    for change in ({"sequence": 9}, {"time": "x"}, {"signature": "0" * 128}, {"key": "0" * 64},
                   {"number": True}, {"number": 2**80}, {"hash": good["hash"].upper()}, {"more": 1},
                   {"hash": good["hash"] + "\n"}):  # fmt: skip
        with pytest.raises(InputError):
            Checkpoint.parse(json.dumps({**good, **change}))
    for text in ("", "[]", "x", '{"a":1,"a":2}'):
        with pytest.raises(InputError, match="not a checkpoint"):
            Checkpoint.parse(text)


def test_nothing_is_signed_without_a_key_or_an_entry(log, tmp_path):
    with pytest.raises(LRP4RAGError, match="empty"):
        log.checkpoint()
    with AuditLog.open(tmp_path / "plain.db") as plain:
        plain.append(decision(1))
        with pytest.raises(InputError, match="needs a key"):
            plain.checkpoint()
        assert plain.verify().last is None
