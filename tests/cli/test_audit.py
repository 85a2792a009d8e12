"""`lrp4rag audit`: what it prints, and its exit codes."""

import json
import sqlite3

import pytest
from click.testing import CliRunner

from lrp4rag.cli import main
from lrp4rag.guard.audit import AuditLog

TEXTS = {"question": "Who?\x1b[31m", "response": "nobody"}


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Invokes the command in a folder with a log of three entries."""
    monkeypatch.chdir(tmp_path)
    with AuditLog.open("audit.db", key=tmp_path / "key", texts=True) as log:
        for number in range(3):
            log.append({"id": f"d{number}", "kind": "decision", "decision": "\x1b[2J"}, TEXTS)

    def invoke(*words, code=0):
        result = CliRunner().invoke(main, ["audit", *map(str, words)])
        assert result.exit_code == code, result.output
        assert "\x1b" not in result.output
        return result

    return invoke


def sql(statement):
    with sqlite3.connect("audit.db") as connection:
        connection.execute(statement)
    connection.close()


def test_a_whole_log(command):
    said = command("verify", "--key", "key").stdout
    assert "entries      3" in said
    assert "whole" in said
    assert "not checked" not in said
    assert "not checked" in command("verify").stdout
    found = json.loads(command("verify", "--json", "--key", "key.pub").stdout)
    assert (found["whole"], found["entries"], found["unsigned"], found["pinned"]) == (True, 3, 0, True)


def test_problems_are_told_in_a_line_each(command):
    sql("UPDATE audit_entries SET record = replace(record, 'd1', 'dX') WHERE sequence = 2")
    lines = command("verify", code=1).stdout.splitlines()
    assert any(line.startswith("PROBLEM      entry 2: its content") for line in lines)
    assert "compare it with an" in "".join(lines)
    found = json.loads(command("verify", "--json", code=1).stdout)
    assert found["whole"] is False
    assert found["problems"][0]["sequence"] == 2


def test_a_checkpoint_kept_elsewhere_finds_a_cut(command, tmp_path):
    kept = command("checkpoint", "--key", "key").stdout
    assert kept == command("checkpoint", "--key", "key").stdout
    (tmp_path / "kept.json").write_text(kept)
    for given in (kept, "kept.json"):
        command("verify", "--checkpoint", given, "--key", "key")
    (tmp_path / "audit.db").unlink()
    with AuditLog.open("audit.db", key=tmp_path / "key") as log:
        log.append({"id": "d0"})
    command("verify", "--key", "key")
    for given in (kept, "kept.json"):
        said = command("verify", "--checkpoint", given, "--key", "key", code=1).stdout
        assert "ends at entry 1" in said
    assert "no such file" in command("verify", "--checkpoint", "none", code=2).stderr
    assert "not a checkpoint" in command("verify", "--checkpoint", "{}", code=2).stderr


def test_an_entry_and_its_texts(command):
    said = command("show", "d1").stdout
    assert "sequence   2" in said
    assert "question:\n  Who?␛[31m" in said
    assert json.loads(command("show", "d1", "--json").stdout)["kept"] == TEXTS
    assert "no entry 'x'" in command("show", "x", code=2).stderr


def test_erasing(command):
    assert command("erase", "d1", "--key", "key").stdout == "2 texts erased\n"
    assert command("erase", "d1").stdout == "0 texts erased\n"
    assert "no entry" in command("erase", "x", code=2).stderr
    assert "question:" not in command("show", "d1").stdout
    command("verify", "--key", "key")


@pytest.mark.parametrize("words", [("checkpoint",), ("erase", "d1")])
def test_a_slip_in_the_key_leaves_the_log_whole(command, tmp_path, words):
    assert "there is no key" in command(*words, "--key", "kye", code=2).stderr
    assert not (tmp_path / "kye").exists()
    command("checkpoint", "--public", "--key", "kye")
    assert "the log is signed" in command(*words, "--key", "kye", code=2).stderr
    command("verify", "--key", "key")
    assert "question:" in command("show", "d1").stdout, "nothing was erased"


def test_an_export(command, tmp_path):
    assert command("export", "log.jsonl").stdout == "3 entries written to log.jsonl\n"
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 3


@pytest.mark.parametrize("name", ["checkpoint --public", "key"])  # and its former name
def test_the_public_key(command, tmp_path, name):
    assert command(*name.split(), "--key", "key").stdout == (tmp_path / "key.pub").read_text()
    (tmp_path / "key").chmod(0o644)
    assert "chmod 600" in command(*name.split(), "--key", "key", code=2).stderr


def test_a_log_that_is_not_there_is_not_made(command, tmp_path, monkeypatch):
    monkeypatch.setenv("LRP4RAG_AUDIT", str(tmp_path / "none.db"))
    for words in (
        ["verify"],
        ["show", "d1"],
        ["export", "f"],
        ["erase", "d1"],
        ["checkpoint", "--key", "key"],
    ):
        assert "there is no audit" in command(*words, code=2).stderr
    assert not (tmp_path / "none.db").exists()
    assert "name the key" in command("checkpoint", code=2).stderr
