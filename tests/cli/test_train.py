"""`train` and `card` with vector detectors, and the workers that `train` and `evaluate` start."""

import json

import pytest

from lrp4rag.training import extract
from lrp4rag.util import processes as processes_of
from lrp4rag.util.errors import InputError
from tests.training.labelled import examples, write_jsonl
from tests.training.quick import few_steps

FEW = ["--bootstrap", 10, "--workers", 1]


def test_train_reuses_the_store_and_writes_a_card(run, detector, labelled_file, store, reader_folder):
    assert len(list((store / "relevance").iterdir())) == 14
    parts = ["--parts", "relevance"]
    result = run("extract", labelled_file, "--store", store, "--reader", reader_folder, *parts)
    assert result.stdout == "0 computed, 14 already present, 0 failed\n"
    card = json.loads(run("card", detector, "--json").stdout)
    assert card["reader"]["name"] == "tiny"
    assert card["training"]["command"].startswith(f"lrp4rag train {labelled_file.name} --store {store.name}")
    assert card["evidence"]["metrics"]["auroc"]["low"] <= card["evidence"]["metrics"]["auroc"]["value"]
    assert card["versions"]["lrp4rag"]
    output = run("card", detector).stdout
    for words in ("svm (this)", "length only", "flag", "novel words", "suspect tokens", "5-fold"):
        assert words in output


@pytest.mark.slow  # four processes import everything
def test_several_workers_give_the_same_card_and_the_same_metrics(
    run, reader_folder, tmp_path, processes, monkeypatch
):
    """Each process loads its own reader, which frames prompts as the detector's was told to."""
    monkeypatch.setattr(processes_of, "START", processes.get_start_method())
    started = []
    in_processes = processes_of._in_processes
    monkeypatch.setattr(processes_of, "_in_processes", lambda *a: started.append(a[2]) or in_processes(*a))
    labelled = write_jsonl(examples(16), tmp_path / "train.jsonl")
    unseen = write_jsonl(examples(4, first=100), tmp_path / "test.jsonl")
    made = []
    for count in (1, 2):
        folder, store = tmp_path / f"d{count}", tmp_path / f"s{count}"
        common = ["--reader", reader_folder, "--workers", count, "--bootstrap", 10, "--json"]
        raw = ["--no-chat-template", "--length", 9, "--out", folder, "--store", store]
        card = rounded(run("train", labelled, *common, *raw).stdout)
        del card["training"]["command"]
        judged = run("evaluate", unseen, *common, "--detector", folder, "--max-memory", "8GB")
        found = rounded(judged.stdout)
        assert found.pop("made_with")["detector"] == folder.name
        made.append((card, found))
    assert started == [2, 2]
    assert not made[0][0]["reader"]["chat_template"]
    assert made[1] == made[0]


def rounded(text):
    """JSON, but for the last digits: threads decide these."""
    return json.loads(text, parse_float=lambda number: round(float(number), 5))


def test_workers_and_memory_reach_the_extraction(run, labelled_file, reader_folder, tmp_path, monkeypatch):
    given = {}

    def noted(*_, **options):
        given.update(options)
        raise InputError("noted")

    monkeypatch.setattr(extract, "extract", noted)
    places = ["--out", tmp_path / "d", "--store", tmp_path / "s", "--length", 9, "--no-chat-template"]
    options = ["--reader", reader_folder, "--workers", 3, "--max-memory", "2GB"]
    assert "noted" in run("train", labelled_file, *places, *options, code=2).stderr
    assert (given["workers"], given["max_memory"]) == (3, 2_000_000_000)
    identity = given["load"](worker=2).identity
    assert (identity.name, identity.chat_template) == ("tiny", False)


def test_data_that_cannot_be_trained_on(run, reader_folder, tmp_path):
    unlabelled = tmp_path / "data.jsonl"
    unlabelled.write_text(json.dumps({"question": "Q", "passages": ["P"], "response": "R"}))
    common = ["--store", tmp_path / "s", "--out", tmp_path / "d", "--reader", reader_folder]
    assert "field 'labels'" in run("train", unlabelled, *common, code=2).stderr
    path = write_jsonl(examples(6), tmp_path / "few.jsonl")
    for options, message in (
        (["--length", 9], "5 folds need at least 5 sources"),
        (["--block", "around"], "10 sources with annotated tokens are needed, and there are 3"),
        ([], "10 sources with annotated tokens are needed, and there are 3"),
    ):
        assert message in run("train", path, *common, *options, code=2).stderr
    assert not (tmp_path / "s").exists(), "nothing was read"
    assert not (tmp_path / "d").exists()


def test_equal_responses_that_fail_are_both_left_out(run, reader_folder, tmp_path):
    path = write_jsonl(examples(14), tmp_path / "data.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    long = {"response": "word " * 600, "labels": [], "question": "Q", "passages": ["P"]}
    lines += [{**lines[0], **long, "id": "L1"}, {**lines[0], **long, "id": "L2"}]
    path.write_text("\n".join(map(json.dumps, lines)))
    common = ["--store", tmp_path / "s", "--reader", reader_folder, *FEW]
    with few_steps():
        run("train", path, *common, "--out", tmp_path / "d", "--length", 9)
    card = json.loads((tmp_path / "d" / "card.json").read_text())
    assert (card["rows"], card["training"]["failures"]) == (14, 2)


def test_where_the_detector_goes_is_checked_first(run, labelled_file, reader_folder, tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "mine.txt").write_text("x")
    common = ["--store", tmp_path / "s", "--reader", reader_folder, "--out"]
    assert "other files" in run("train", labelled_file, *common, tmp_path / "d", code=2).stderr
    for name in ("default", "text", "none"):
        assert "has a meaning of its own" in run("train", labelled_file, *common, name, code=2).stderr
    assert not (tmp_path / "s").exists()
