"""`lrp4rag corrupt`: what it writes and prints, and what it refuses."""

import json

import pytest

from lrp4rag.cli.corrupt import KINDS
from lrp4rag.data import json_line, load_examples
from lrp4rag.training.pairs import KINDS as ALL_KINDS
from lrp4rag.training.pairs import pairs_of
from tests.training.pairs.texts import ALL, LEAVE, of


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write(ALL, tmp_path_factory.mktemp("data") / "labelled.jsonl")


def write(examples, path):
    path.write_text("".join(f"{json_line(one)}\n" for one in examples))
    return path


def test_no_more_copies_are_asked_for_than_anyone_reads(run, tmp_path):
    data = tmp_path / "data.jsonl"
    result = run("corrupt", data, "--out", tmp_path / "out", "--each", 10**12, code=2)
    assert "in the range 1<=x<=1000" in result.stderr


def test_what_is_written_reads_back_as_what_was_made(run, data, tmp_path):
    out = tmp_path / "pairs.jsonl"
    result = run("corrupt", data, "--out", out, "--each", 9, "--seed", 3)
    rows = load_examples(out)
    assert rows == list(pairs_of(ALL, each=9, seed=3))
    counts = {
        name: int(number)
        for number, name in (line.split(None, 1) for line in result.stdout.splitlines()[:-1])
    }
    harmless = counts.pop("harmless copies")
    assert counts == {
        kind: sum(one.labels[0].kind == kind for one in rows if one.labels) for kind in ALL_KINDS
    }
    assert harmless == sum(one.labels == () for one in rows) - len(ALL)
    assert "3 faithful responses used;" in result.stdout


def test_options_choose_kinds_and_numbers(run, data, tmp_path):
    out = tmp_path / "pairs.jsonl"
    some = ["--kind", "number", "--kind", "date-or-unit", "--faults", 2, "--no-harmless", "--limit", 2]
    run("corrupt", data, "--out", out, *some)
    expected = pairs_of(ALL[:2], kinds=["number", "date or unit"], faults=2, harmless=False)
    assert load_examples(out) == list(expected)


def test_kinds_are_those_of_the_library():
    assert tuple(kind.replace("-", " ") for kind in KINDS) == ALL_KINDS


def test_rows_keep_prompts_of_other_wordings(run, tmp_path):
    prompt = "\n\n".join(["Read this.", *LEAVE.passages, LEAVE.question])
    row = {
        "question": LEAVE.question,
        "passages": LEAVE.passages,
        "prompt": prompt,
        "response": LEAVE.response,
    }
    data = tmp_path / "one.json"
    data.write_text(json.dumps(row | {"labels": [], "generator": "g", "source_id": "s"}))
    out = tmp_path / "pairs.jsonl"
    run("corrupt", data, "--out", out, "--kind", "number")
    original, *copies = load_examples(out)
    assert original == load_examples(data)[0]
    assert all((one.prompt, one.generator, one.source) == (prompt, "g", "s") for one in copies)


@pytest.mark.parametrize(
    ("row", "options", "message"),
    [
        ({"labels": None}, (), "has no labels; labelled data is needed"),
        ({"labels": [{"start": 0, "end": 4}]}, (), "no response is faithful"),
        ({}, ("--kind", "number"), "none of the 1 faithful responses admits a fault of these kinds"),
        ({}, ("--kind", "spelling"), "'spelling' is not one of"),
        ({}, ("--faults", 0), "0 is not in the range x>=1"),
        ({}, ("--generator", "x"), "no responses of 'x'"),
    ],
)
def test_what_is_refused(run, tmp_path, row, options, message):
    line = json.loads(json_line(of("Blue.", "Red."))) | row
    data, out = tmp_path / "d.jsonl", tmp_path / "pairs.jsonl"
    data.write_text(json.dumps(line))
    assert message in run("corrupt", data, "--out", out, *options, code=2).stderr
    assert not out.exists()


def test_the_input_is_not_written_over(run, data):
    before = data.read_bytes()
    assert "read as input" in run("corrupt", data, "--out", data, code=2).stderr
    assert data.read_bytes() == before
