"""`lrp4rag calibrate`, and what the commands make of its file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from lrp4rag.cli import main
from lrp4rag.example import Example, Label
from lrp4rag.guard.evaluation.unfinished import Unfinished
from lrp4rag.judge import Detector
from lrp4rag.reader import Reader
from lrp4rag.reader.comparer import EncodedPair, Entailment, EntailmentModel, Pair
from lrp4rag.reader.published import Calibration, Scale
from lrp4rag.util.errors import InputError
from tests.cli.plain_detector import plain_detector
from tests.reader.published import save_published
from tests.tiny import bridge_example
from tests.training.labelled import examples, write_jsonl

DIGEST = "c" * 64
LABELS = ("supported", "unsupported")


class Words(EntailmentModel):
    """Doubts a claim by its words that the premise lacks."""

    def _encode(self, pair: Pair) -> EncodedPair:
        raise NotImplementedError

    def _entail(self, pairs: Sequence[EncodedPair], asked: tuple[int, ...]) -> list[Entailment]:
        raise NotImplementedError

    def _entailments(self, pairs: Sequence[Pair], asked: tuple[int, ...]) -> list[Entailment]:
        found = []
        for pair in pairs:
            doubt = float(np.mean([word not in pair.premise for word in pair.claim.split()]))
            classes = np.log(np.array([1.1 - doubt, doubt / 2 + 0.1, doubt / 2 + 0.1], dtype=np.float32))
            found.append(Entailment(classes, np.array([[0, 1]]), np.array([doubt], dtype=np.float32)))
        return found


def sentences() -> list[Example]:
    """Right and wrong answers, by turns."""
    found = []
    for k in range(40):
        wrong = f"A red dragon burned the river in {1700 + k}."
        right = f"The old stone bridge {k} was opened in {1900 + k}."
        labels = (Label(0, len(wrong), "name"),) if k % 2 else ()
        found.append(bridge_example(k, response=wrong if k % 2 else right, labels=labels))
    return found


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_published(tmp_path_factory.mktemp("models") / "published", LABELS)


@pytest.fixture(scope="module")
def calibrated(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights tell one way or the other: the file of that in which they rise with faults."""
    path = tmp_path_factory.mktemp("calibrated") / "c.json"
    words = Words(None, (), DIGEST)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lrp4rag.training.calibrate.bundled_comparer", lambda *_: words)
        patch.setattr("lrp4rag.training.calibrate.load_set", lambda _: sentences())
        common = ["calibrate", model, "--out", path, "--every", 1, "--bootstrap", 20, "--device", "cpu"]
        codes = []
        for names in (LABELS, LABELS[::-1]):
            result = CliRunner().invoke(main, [*map(str, common), "--labels", ",".join(names)])
            codes.append(result.exit_code)
            assert "before" in result.output or "--labels" in result.output, result.output
            if result.exit_code == 0:
                assert "after" in result.output
    assert sorted(codes) == [0, 2]
    return path


def test_the_file_has_what_is_needed_to_use_it_and_figures(calibrated: Path, model: Path):
    calibration = Calibration.read(calibrated)
    assert calibration.comparer == DIGEST
    assert Path(calibration.model) == model
    assert len(calibration.seen) == 40
    assert calibration.figures["sentences"] == 40
    assert calibration.figures["metrics"].keys() == {"before", "after", "the comparer"}
    assert calibration.scales.unsupported.slope > 0


@pytest.fixture(scope="module")
def reads_comparer(tiny_reader: Reader, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("detectors") / "compares"
    return plain_detector(tiny_reader, "entailment", DIGEST).save(folder)


def test_commands_judge_by_it_and_say_so(
    run: Any, calibrated: Path, reads_comparer: Path, reader_folder: Path, tmp_path: Path
):
    data = write_jsonl(examples(2, first=100), tmp_path / "d.jsonl")
    common = ["--detector", reads_comparer, "--reader", reader_folder, "--comparer", calibrated]
    for line in run("analyse", data, *common, "--json").stdout.splitlines():
        row = json.loads(line)
        assert row["comparer"]["name"] == "published"
        assert len(row["comparer"]["weights"]) == 64
        assert 0 <= row["probability"] <= 1
    assert "published" in run("analyse", data, "--id", "bridge-100", *common).stdout
    out = tmp_path / "results.json"
    assert "published" in run("evaluate", data, *common, "--out", out, "--bootstrap", 10).stdout
    assert "published" in json.loads(out.read_text())["made_with"]["comparer"]


def test_a_killed_evaluation_does_not_go_on_with_what_another_comparer_read(
    run: Any,
    calibrated: Path,
    reads_comparer: Path,
    reader_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(Unfinished, "done", lambda self: None)
    data, file, out = tmp_path / "d.jsonl", tmp_path / "c.json", tmp_path / "results.json"
    write_jsonl(examples(2, first=100), data)
    common = ["--detector", reads_comparer, "--reader", reader_folder, "--comparer", file, "--bootstrap", 10]
    rows, calibration = [], Calibration.read(calibrated)
    for offset in (0, 0, 1):
        scales = calibration.scales.model_copy(update={"words": Scale(offset=offset)})
        calibration.model_copy(update={"scales": scales}).write(file)
        run("evaluate", data, *common, "--out", out)
        lines = Path(f"{out}.unfinished").read_text().split("\n")
        rows.append(len(list(filter(None, lines))))
    assert rows == [2, 2, 4]


def test_what_it_was_calibrated_on_is_seen(
    run: Any, calibrated: Path, reads_comparer: Path, reader_folder: Path, tmp_path: Path
):
    data = write_jsonl(examples(4), tmp_path / "d.jsonl")
    common = ["--detector", reads_comparer, "--reader", reader_folder, "--comparer", calibrated]
    assert "4 of 4" in run("evaluate", data, *common, code=2).stderr


def test_the_library_judges_by_it_too(calibrated: Path, reads_comparer: Path, tiny_reader: Reader):
    detector = Detector.load(reads_comparer, reader=tiny_reader, device="cpu", comparer=calibrated)
    (example,) = examples(1, first=100)
    verdict = detector.at(0.1).judge(example) if detector.card.operating_points else detector.judge(example)
    assert verdict.comparer is not None
    assert verdict.to_dict()["comparer"]["name"] == "published"
    assert "published" in verdict.to_html()
    model = detector.model
    assert model is not None
    assert model.at_prevalence(0.1).replacement is model.replacement
    assert detector.versions["comparer"]


def test_evidence_without_a_verdict_takes_none(run: Any, calibrated: Path, example_file: Path):
    given = ["--comparer", calibrated, "--detector", "none"]
    assert "needs a detector" in run("analyse", example_file, *given, code=2).stderr


def test_a_detector_that_reads_no_comparer_takes_none(
    run: Any, calibrated: Path, example_file: Path, detector: Path, reader_folder: Path
):
    given = ["--comparer", calibrated, "--detector", detector, "--reader", reader_folder]
    assert "reads no comparer" in run("analyse", example_file, *given, code=2).stderr


def test_a_models_name_is_refused_with_what_makes_a_file_of_it(
    run: Any, reads_comparer: Path, example_file: Path, reader_folder: Path
):
    common = ["--detector", reads_comparer, "--reader", reader_folder]
    stderr = run("analyse", example_file, *common, "--comparer", "org/nli-model", code=2).stderr
    assert "lrp4rag calibrate" in stderr


def test_a_server_says_what_would_judge(run: Any, calibrated: Path, reads_comparer: Path, tmp_path: Path):
    settings = tmp_path / "s.yaml"
    settings.write_text(f"detector: {reads_comparer}\naudit: {tmp_path / 'a.db'}\n")
    common = ["serve", "--config", settings, "--check", "--comparer"]
    assert "published" in run(*common, calibrated).stdout
    assert "lrp4rag calibrate" in run(*common, tmp_path / "nowhere.json", code=2).stderr


def test_a_file_for_another_comparer_is_refused(calibrated: Path, tiny_reader: Reader):
    with pytest.raises(InputError, match="calibrated to another"):
        plain_detector(tiny_reader, "entailment", "d" * 64).with_comparer(calibrated)


def test_a_gguf_file_is_refused_with_what_is_taken(run: Any, tmp_path: Path):
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    for name in (tmp_path / "model.gguf", "nowhere.gguf"):
        stderr = run("calibrate", name, "--out", tmp_path / "c.json", code=2).stderr
        assert "classifier in safetensors" in " ".join(stderr.split())
        assert "hub did not" not in stderr


def test_nothing_is_written_where_the_model_cannot_be_read(run: Any, tmp_path: Path):
    out = tmp_path / "c.json"
    save_published(tmp_path / "m", ("LABEL_0", "LABEL_1"))
    assert "--labels" in run("calibrate", tmp_path / "m", "--out", out, code=2).stderr
    assert (
        "model.safetensors"
        in run("calibrate", tmp_path / "m", "--out", tmp_path / "m" / "model.safetensors", code=2).stderr
    )
    assert not out.exists()
