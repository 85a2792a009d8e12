"""`train` without data: it learns from the set that comes with the package, for any reader."""

import json

import pytest

from lrp4rag.training import extract, sets
from lrp4rag.training import train as training
from lrp4rag.training.corpus import Corpus
from lrp4rag.util.errors import InputError
from tests.tiny import save_tiny_reader


@pytest.fixture(scope="module", autouse=True)
def _a_quarter(tmp_path_factory):
    """Every twelfth question of the set: what is chosen of it goes by question and by answer."""
    folder = tmp_path_factory.mktemp("sets")
    lines = sets.EVERYDAY.read_text().splitlines(keepends=True)
    (folder / sets.EVERYDAY.name).write_text("".join(lines[::12]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sets, "_FOLDER", folder)
        patch.setattr(sets, "EVERYDAY", folder / sets.EVERYDAY.name)
        yield


@pytest.fixture
def corpora(monkeypatch):
    """The ids that would be extracted, and for which reader: `train` ends there."""
    calls = []

    def noted(examples, reader, store, **options):
        calls.append(([example.id for example in examples], reader, store, options))
        raise InputError("noted")

    monkeypatch.setattr(extract, "extract", noted)
    return calls


def ids_of(run, corpora, *options):
    assert "noted" in run("train", *options, code=2).stderr
    return set(corpora.pop()[0])


def test_without_data_it_learns_what_the_bundled_detector_learned_from_the_package(
    run, corpora, reader_folder, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    options = ["--reader", reader_folder, "--out", tmp_path / "d"]
    ids = ids_of(run, corpora, *options)
    everyday = sets.load_set("everyday")
    faithful = {one.id for one in everyday if not one.labels}
    faulty = {one.id for one in everyday if one.labels}
    assert faithful < ids
    assert 0.45 < len(faulty & ids) / len(faulty) < 0.55
    pairs = ids - faithful - faulty
    assert 0 < len(pairs) < len(faithful)
    assert ids_of(run, corpora, *options, "--more-every", 1, "--no-pairs") == faithful | faulty
    few = ids_of(run, corpora, *options, "--limit", 20)
    assert ids_of(run, corpora, "everyday", *options, "--limit", 20) == few
    (tmp_path / "everyday").mkdir()  # which is not meant where no DATA is named
    assert ids_of(run, corpora, *options, "--limit", 20) == few


def test_what_is_extracted_is_kept_beside_the_detector(run, corpora, reader_folder, tmp_path):
    options = ["--reader", reader_folder, "--limit", 10]
    result = run("train", *options, "--out", tmp_path / "d", code=2)
    assert corpora.pop()[2] == tmp_path / "d-store"
    assert str(tmp_path / "d-store") in result.stderr
    run("train", *options, "--out", tmp_path / "d", "--store", tmp_path / "s", code=2)
    assert corpora.pop()[2] == tmp_path / "s"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--classifier", "svm"], "name DATA"),
        (["--vector", "segments"], "name DATA"),
        (["--more", "everyday"], "leave it out of --more"),
        (["everyday", "--more", "everyday"], "leave it out of --more"),
        (["--reader", "none"], "needs a reader"),
    ],
)
def test_what_cannot_be_learned_from_it_is_refused_before_anything_is_made_of_it(
    run, tmp_path, monkeypatch, options, words
):
    monkeypatch.setattr(Corpus, "of", None)
    assert words in run("train", *options, "--out", tmp_path / "d", code=2).stderr
    assert not (tmp_path / "d").exists()


def tall(number: int, metres: int) -> dict[str, object]:
    labels = [] if metres == number else [{"start": 6, "end": 8, "kind": "number"}]
    return {
        "question": f"How tall is tower {number}?",
        "passages": [f"Tower {number} is {number} metres tall."],
        "response": f"It is {metres} metres tall.",
        "labels": labels,
        "id": f"{number}-{metres}",
        "source_id": str(number),
    }


def test_a_killed_run_goes_on_after_the_last_response(run, tmp_path, monkeypatch):
    reader = save_tiny_reader(tmp_path / "wide", window=4096)
    data = tmp_path / "towers.jsonl"
    rows = [tall(number, number + more) for number in range(20, 32) for more in (0, 7)]
    data.write_text("\n".join(json.dumps(row) for row in rows))
    options = [data, "--reader", reader, "--out", tmp_path / "d", "--no-pairs", "--workers", 1]
    write, written = extract.Store.write_record, []

    def interrupt_after_6(store, example, record):
        write(store, example, record)
        written.append(example.id)
        if len(written) == 6:
            raise KeyboardInterrupt

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(extract.Store, "write_record", interrupt_after_6)
    monkeypatch.setattr(training, "cross_validate_tokens", interrupt)
    run("train", *options, code=1)
    assert len(written) == 6
    run("train", *options, code=1)
    assert len(written) == len(set(written)) == len(rows)
    resumed = run("train", *options, code=1)
    assert len(written) == len(rows), resumed.output
