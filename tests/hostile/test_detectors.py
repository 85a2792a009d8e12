"""Detectors that are broken or forged: refused when they are loaded, and never a verdict of "grounded"."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import skops.io

from lrp4rag.classifiers import FittedDetector
from lrp4rag.classifiers.card import Card
from lrp4rag.classifiers.committee import Committee, Count, Member, Vote
from lrp4rag.classifiers.folder import BUNDLES, CARD, ESTIMATOR, LARGEST, load_card, write
from lrp4rag.classifiers.perceptron import Perceptron
from lrp4rag.errors import InputError, RelevanceError
from lrp4rag.features.table import TokenTable
from lrp4rag.reader import Reader
from lrp4rag.strict_json import sealed
from tests.classifiers.samples import READER, labelled_rows
from tests.features.records import random_record
from tests.hostile.strings import TEXTS, obeyed

NUMBERS = [float("nan"), float("inf"), float("-inf"), 2, -1, 1e308, "0.5", None, [], {}]
BLOCK = TokenTable(("entropy",), (), (1,))


def member(scale: float = 1.0, weight: float = 0.1) -> Member:
    weights = {
        name: np.full(tuple(array.shape), weight, dtype=np.float32)
        for name, array in Perceptron(1, 32, 0.0).state_dict().items()
    }
    return Member(np.zeros(1, np.float32), np.full(1, scale, np.float32), weights)


def committee(**changes: Any) -> Committee:
    votes = Count(Vote(np.ones(1, np.float32), 0.0), Vote(np.ones(6, np.float32) / 6, 0.0))
    return Committee({"own": (member(**changes),)}, votes)


def card(**changes: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "format": 3,
        "classifier": "tokens",
        "settings": "own",
        "reader": READER,
        "composite": "attnlrp",
        "target": "response",
        "input": {
            "kind": "tokens",
            "blocks": {"own": {"features": ["entropy"], "profiles": [], "windows": [1]}},
            "reading": {
                **{"top": 3, "slope": 1.0, "offset": 0.0, "token_threshold": 0.5},
                **{"sentence_top": 3, "sentence_threshold": 0.5, "shifts": {"g": 0.1}},
            },
        },
        "feature_version": 1,
        "threshold": 0.5,
        "rows": 10,
        "hallucinated": 5,
        "versions": {"torch": "1"},
        "operating_points": {
            "balanced": {
                **{"threshold": 0.5, "rule": "r", "precision": 0.5},
                **{"recall": 0.5, "false_positive_rate": 0.5},
            }
        },
        "faithful_quantiles": [0.1, 0.2, 0.9],
        "domain": {"prompt tokens": {"low": 1.0, "high": 1e6}},
        "reference": {"entropy": {"faithful": [1, 2, 3, 4, 5], "hallucinated": [1, 2, 3, 4, 5]}},
    }
    return {**fields, **changes}


def saved(folder: Path, learned: Any = None, **changes: Any) -> Path:
    """A detector whose hashes agree, whatever is in it: what somebody forged, or a bug wrote."""
    folder.mkdir()
    skops.io.dump(committee().arrays() if learned is None else learned, folder / ESTIMATOR)
    digest = hashlib.sha256((folder / ESTIMATOR).read_bytes()).hexdigest()
    put(folder, {**card(), "estimator_sha256": digest, **changes})
    return folder


def put(folder: Path, record: dict[str, Any]) -> None:
    content = json.dumps({**record, "sha256": ""})
    try:
        content = json.dumps(sealed(record))
    except ValueError:  # it holds NaN
        content = json.dumps({**record, "sha256": "0" * 64})
    (folder / CARD).write_text(content)


def changed(record: dict[str, Any], place: str, value: Any) -> dict[str, Any]:
    name, _, rest = place.partition("/")
    inner = changed(record[name], rest, value) if rest else value
    return {**record, name: inner}


def record() -> Any:
    one = random_record(12, text="All is well here now. Nothing of this is so at all.")
    return replace(one, relevance=replace(one.relevance, reader=READER))


def test_the_detector_that_is_broken_below_is_whole(tmp_path: Path) -> None:
    detector = FittedDetector.load(saved(tmp_path / "d"))
    verdict = detector.predict(record())
    assert verdict.probability is not None
    assert verdict.hallucinated is not None


NUMERIC = [
    *("threshold", "rows", "hallucinated", "input/reading/top", "input/reading/slope"),
    *("input/reading/offset", "input/reading/token_threshold", "input/reading/sentence_top"),
    *("input/reading/sentence_threshold", "operating_points/balanced/threshold"),
    *("operating_points/balanced/false_positive_rate", "domain/prompt tokens/low"),
]
LEGAL = {("domain/prompt tokens/low", 2), ("domain/prompt tokens/low", -1)} | {
    (f"input/reading/{name}", value) for name in ("slope", "offset") for value in (2, -1)
}
LEGAL |= {(name, 2) for name in ("rows", "hallucinated", "input/reading/top", "input/reading/sentence_top")}


@pytest.mark.parametrize("value", NUMBERS, ids=repr)
@pytest.mark.parametrize("place", NUMERIC)
def test_a_number_that_is_none_or_out_of_range(place: str, value: Any, tmp_path: Path) -> None:
    if isinstance(value, int) and (place, value) in LEGAL:
        return
    if value == "0.5" and place not in ("rows", "hallucinated") and not place.endswith("top"):
        return  # read as the number it spells
    folder = saved(tmp_path / "d")
    put(folder, changed(json.loads((folder / CARD).read_text()), place, value))
    for load in (load_card, FittedDetector.load):
        with pytest.raises(InputError, match=CARD):
            load(folder)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("input/reading/top", 0),
        ("input/reading/top", -5),
        ("input/reading/sentence_top", 0),
        ("input/reading/slope", 1e300),
        ("input/reading/shifts", {"g": float("nan")}),
        ("input/reading/shifts", {"g": 1e300}),
        ("faithful_quantiles", [0.1, float("nan")]),
        ("faithful_quantiles", [0.5, 0.1]),
        ("faithful_quantiles", [-0.1, 0.1]),
        ("faithful_quantiles", [0.1, 1.1]),
        ("domain/prompt tokens", {"low": 2.0, "high": 1.0}),
        ("domain/prompt tokens", {"low": float("nan"), "high": 1.0}),
        ("reference/entropy/faithful", [1, 2, 3]),
        ("reference/entropy/faithful", [5, 4, 3, 2, 1]),
        ("reference/entropy/faithful", [1, 2, 3, 4, float("nan")]),
        ("hallucinated", 11),
        ("composite", "unknown"),
        ("composite", "\x1b[2J"),
        ("reader", {}),
        ("reader", "tiny"),
        ("reader/digest", 3),
        ("reader/chat_template", "yes"),
        ("reader/name", None),
        ("input/kind", "other"),
        ("input/blocks", {"own": {"features": ["no such"]}}),
        ("input/blocks", {"own": {"features": ["entropy"], "windows": [2]}}),
        ("input/blocks", {"own": {"features": ["entropy"], "windows": [10**9 + 1]}}),
        ("input/blocks", {"own": {"part": "whole", "depth": 7}}),
        ("input", {"kind": "vector", "vector": "no such", "length": 9, "mode": "interpolate"}),
        ("input", {"kind": "vector", "vector": "total", "length": 10**9, "mode": "interpolate"}),
        ("input", {"kind": "vector", "vector": "total", "length": 0, "mode": "interpolate"}),
        ("input", {"kind": "vector", "vector": "total", "length": 9, "mode": "other"}),
        ("training", {"data_hash": 3}),
        ("evidence", []),
        ("surplus", 1),
    ],
)
def test_a_card_that_does_not_hold_together(place: str, value: Any, tmp_path: Path) -> None:
    folder = saved(tmp_path / "d")
    put(folder, changed(json.loads((folder / CARD).read_text()), place, value))
    for load in (load_card, FittedDetector.load):
        with pytest.raises(InputError, match=CARD):
            load(folder)


@pytest.mark.parametrize("missing", sorted(set(card()) - {"versions"}))
def test_a_card_that_lacks_a_field(missing: str, tmp_path: Path) -> None:
    folder = saved(tmp_path / "d")
    record = json.loads((folder / CARD).read_text())
    del record[missing]
    (folder / CARD).write_text(json.dumps(record))
    with pytest.raises(InputError, match=CARD):
        load_card(folder)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("threshold", 0.9),
        ("settings", "other"),
        ("input/reading/slope", 2.0),
        ("operating_points/balanced/threshold", 0.9),
        ("reader/digest", "another"),
        ("estimator_sha256", "0" * 64),
    ],
)
def test_an_edited_card_is_refused(place: str, value: Any, tmp_path: Path) -> None:
    folder = saved(tmp_path / "d")
    (folder / CARD).write_text(json.dumps(changed(json.loads((folder / CARD).read_text()), place, value)))
    with pytest.raises(InputError, match="changed or is damaged"):
        load_card(folder)


NO_CARDS = [
    *("", "{", "null", "[]", "3", '"card"', "[" * 100_000, '{"format": ' * 100_000, "\ud800"),
    *('{"format": 3, "format": 3}', '{"format": NaN}', '{"format": 1e999}', '{"format": 99}'),
    '{"feature_version": "1"}',
]


@pytest.mark.parametrize(
    "content",
    NO_CARDS,
    ids=lambda content: content[:20].encode("ascii", "replace").decode(),
)
def test_a_file_that_is_no_card(content: str, tmp_path: Path) -> None:
    (tmp_path / CARD).write_bytes(content.encode("utf-8", "surrogatepass"))
    with pytest.raises(InputError, match=str(tmp_path)):
        load_card(tmp_path)


@pytest.mark.parametrize("name", [CARD, ESTIMATOR])
@pytest.mark.parametrize("kind", ["pipe", "folder", "missing"])
def test_a_file_that_is_none(name: str, kind: str, tmp_path: Path) -> None:
    folder = saved(tmp_path / "d")
    (folder / name).unlink()
    if kind == "pipe":
        os.mkfifo(folder / name)
    elif kind == "folder":
        (folder / name).mkdir()
    with pytest.raises(InputError, match=str(folder)):
        FittedDetector.load(folder)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("key", sorted(committee().arrays()))
def test_weights_that_are_no_numbers(key: str, value: float, tmp_path: Path) -> None:
    arrays = committee().arrays()
    arrays[key] = np.full_like(arrays[key], value)
    with pytest.raises(InputError, match=r"estimator\.skops.*NaN or Inf"):
        FittedDetector.load(saved(tmp_path / "d", arrays))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda arrays: arrays.pop("own/0/mean"),
        lambda arrays: arrays.pop("vote/alone"),
        lambda arrays: arrays.update({"own/0/scale": np.zeros(1, np.float32)}),
        lambda arrays: arrays.update({"own/0/scale": np.full(1, -1.0, np.float32)}),
        lambda arrays: arrays.update({"vote/alone": np.zeros(7, np.float32)}),
        lambda arrays: arrays.update({"other/0/mean": np.zeros(1, np.float32)}),
        lambda arrays: arrays.update({"own/0/mean": np.zeros(3, np.float32)}),
        lambda arrays: arrays.clear(),
    ],
)
def test_weights_of_another_shape(spoil: Callable[[dict[str, Any]], Any], tmp_path: Path) -> None:
    arrays: dict[str, Any] = dict(committee().arrays())
    spoil(arrays)
    with pytest.raises(InputError, match="not a token detector"):
        FittedDetector.load(saved(tmp_path / "d", arrays))


@pytest.mark.parametrize("learned", [[], 3, "text", None, {"own": "text"}, {"vote/alone": 3}])
def test_something_else_that_was_learned(learned: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a token detector"):
        FittedDetector.load(saved(tmp_path / "d", [learned] if learned is None else learned))


@pytest.mark.parametrize("classifier", ["svm", "forest", "mlp", "threshold"])
def test_nan_in_what_a_vector_detector_learned(classifier: str, tmp_path: Path) -> None:
    rows, labels, _ = labelled_rows()
    detector = FittedDetector.fit(rows, labels, classifier=classifier)
    (part,) = detector.model.estimator.calibrated_classifiers_  # type: ignore[union-attr]
    FittedDetector.load(detector.save(tmp_path / "whole"))
    part.calibrators[0].a_ = np.nan
    with pytest.raises(InputError, match=r"NaN or Inf"):
        FittedDetector.load(detector.save(tmp_path / "broken"))


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    folder = saved(tmp_path / "d")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("schema.json", "{}")
        with archive.open("bomb.npy", "w", force_zip64=True) as stream:
            for _ in range(LARGEST // 2**24 + 1):
                stream.write(bytes(2**24))
    (folder / ESTIMATOR).write_bytes(packed.getvalue())
    assert len(packed.getvalue()) < 3e6
    digest = hashlib.sha256(packed.getvalue()).hexdigest()
    put(folder, {**json.loads((folder / CARD).read_text()), "estimator_sha256": digest})
    with pytest.raises(InputError, match="unpacked, it takes"):
        FittedDetector.load(folder)


def test_a_file_with_another_hash_is_refused(tmp_path: Path) -> None:
    folder = saved(tmp_path / "d")
    content = bytearray((folder / ESTIMATOR).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / ESTIMATOR).write_bytes(bytes(content))
    with pytest.raises(InputError, match="corrupt"):
        FittedDetector.load(folder)


@pytest.mark.parametrize(
    "classes", [[1, 0], [True, False], [0, 1], ["a", "b"], [False], [False, True, True], None]
)
def test_classes_of_another_order_or_kind(classes: Any, tmp_path: Path) -> None:
    rows, labels, _ = labelled_rows()
    detector = FittedDetector.fit(rows, labels, classifier="threshold")
    detector.model.estimator.classes_ = None if classes is None else np.array(classes)  # type: ignore[union-attr]
    with pytest.raises(InputError, match="not a vector detector"):
        FittedDetector.load(detector.save(tmp_path / "d"))


@pytest.mark.parametrize("learned", [[], {}, "x", 3, {"classes_": [False, True]}], ids=str)
def test_a_vector_detector_of_something_else(learned: Any, tmp_path: Path) -> None:
    given = {"kind": "vector", "vector": "total", "length": 9, "mode": "interpolate"}
    with pytest.raises(InputError, match="not a vector detector"):
        FittedDetector.load(saved(tmp_path / "d", learned, input=given))


@pytest.mark.parametrize("vector", ["prompt", "segments", "matrix", "total"])
def test_a_vector_detector_of_other_vectors(vector: str, tmp_path: Path) -> None:
    rows, labels, _ = labelled_rows()
    estimator = FittedDetector.fit(rows, labels, classifier="svm").model.estimator  # type: ignore[union-attr]
    given = {"kind": "vector", "vector": vector, "length": 16, "mode": "interpolate"}
    with pytest.raises(InputError, match="not a vector detector"):
        FittedDetector.load(saved(tmp_path / "d", estimator, input=given))


# Where it is written.


@pytest.mark.parametrize(
    "content", [None, "", "{}", '{"my business card": 1}', "[1]", '{"format": 3}'], ids=str
)
def test_a_card_of_somebody_else_stays(content: str | None, tmp_path: Path) -> None:
    rows, labels, _ = labelled_rows()
    detector = FittedDetector.fit(rows, labels, classifier="threshold")
    folder = tmp_path / "d"
    folder.mkdir()
    if content is None:
        (folder / CARD).mkdir()
        (folder / CARD / "thesis.txt").write_text("years of work")
    else:
        (folder / CARD).write_text(content)
    with pytest.raises(InputError, match="other files"):
        detector.save(folder)
    left = (folder / CARD / "thesis.txt") if content is None else folder / CARD
    assert left.read_text() == ("years of work" if content is None else content)


def test_a_detector_that_cannot_be_put_in_place_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, labels, _ = labelled_rows()
    detector = FittedDetector.fit(rows, labels, classifier="threshold")
    folder = detector.save(tmp_path / "d")
    before = (folder / CARD).read_bytes()

    def fail(self: Path, target: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail)
        with pytest.raises(KeyboardInterrupt):
            detector.save(folder)
    assert (folder / CARD).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["d"]


def test_the_folder_that_the_command_runs_in_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, labels, _ = labelled_rows()
    detector = FittedDetector.fit(rows, labels, classifier="threshold")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="runs in"):
        detector.save(".")
    assert detector.save("d" * 255).is_dir()


# At the verdict.


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("name", ["response", "logits", "by_segment"])
def test_relevance_that_is_no_number_has_no_verdict(name: str, value: float, tmp_path: Path) -> None:
    detector = FittedDetector.load(saved(tmp_path / "d"))
    given = record()
    relevance = given.relevance
    array = np.array(getattr(relevance, name) if getattr(relevance, name) is not None else np.zeros((4, 12)))
    array[..., 3] = value
    broken = replace(given, relevance=replace(relevance, **{name: array.astype(np.float32)}))
    for judge in (detector.predict, lambda one: detector.predict_proba([one])):
        with pytest.raises(RelevanceError, match=f"no verdict: '{name}' holds NaN or Inf"):
            judge(broken)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_signal_that_is_no_number_has_no_verdict(value: float, tmp_path: Path) -> None:
    detector = FittedDetector.load(saved(tmp_path / "d"))
    given = record()
    entropy = np.array(given.signals["entropy"], dtype=np.float64)
    entropy[0] = value
    with pytest.raises(RelevanceError, match="'entropy' holds NaN or Inf"):
        detector.predict(replace(given, signals={**given.signals, "entropy": entropy}))


@pytest.mark.parametrize("value", [float("nan"), -0.1, 1.1, float("inf")])
def test_a_probability_that_is_none_has_no_verdict(value: float, tmp_path: Path) -> None:
    """Whatever made it: a bug in a detector must not pass for "grounded"."""
    detector = FittedDetector.load(saved(tmp_path / "d"))

    class Broken:
        needs, blocks, wanted = (), {}, None

        def probabilities(self, records: Any) -> Any:
            return np.full(len(records), value)

        def judge(self, record: Any, threshold: float) -> Any:
            return replace(detector.predict(record), probability=value)

    broken = replace(detector, model=Broken())  # type: ignore[arg-type]
    for judge in (broken.predict, lambda one: broken.predict_proba([one])):
        with pytest.raises(RelevanceError, match="no verdict"):
            judge(record())


# On the command line.


def test_no_clean_exit_with_a_broken_detector(
    run: Any, example_file: Path, reader_folder: Path, tiny_reader: Reader, tmp_path: Path
) -> None:
    rows, labels, _ = labelled_rows()
    own = [replace(one, reader=tiny_reader.identity.as_dict()) for one in rows]
    whole = FittedDetector.fit(own, labels, classifier="threshold")
    detector = whole.save(tmp_path / "whole")
    (part,) = whole.model.estimator.calibrated_classifiers_  # type: ignore[union-attr]
    part.calibrators[0].b_ = np.nan
    broken = write(tmp_path / "broken", whole.card, whole.model.estimator)  # type: ignore[union-attr]
    common = ["analyse", example_file, "--reader", reader_folder, "--json"]
    assert run(*common, "--detector", detector).stdout.startswith("{")
    result = run(*common, "--fail-on-hallucination", "--detector", broken, code=2)
    assert result.stdout == ""
    assert "NaN or Inf" in result.stderr


@pytest.mark.parametrize("text", TEXTS)
def test_info_shows_what_a_card_says_and_obeys_none_of_it(text: str, run: Any, tmp_path: Path) -> None:
    folder = saved(
        tmp_path / "d",
        settings=text,
        classifier=text,
        target=text,
        versions={text: text},
        reader={**READER, "name": text, "dtype": text, "digest": text},
        training={
            **{"data_hash": text, "generators": {text: 3}, "failures": 0},
            **{"sources": [text], "command": text},
        },
    )
    for form in ([], ["--json"]):
        result = run("card", folder, *form)
        assert not obeyed(result.stdout)
    assert json.loads(result.stdout)["settings"] == text
    if not obeyed(text) and "\u2028" not in text:
        assert text in run("card", folder).stdout.replace("\n", "")


@pytest.mark.parametrize("name", BUNDLES)
def test_the_bundled_detectors_pass(name: str) -> None:
    assert isinstance(load_card(name), Card)
    FittedDetector.load(name)
