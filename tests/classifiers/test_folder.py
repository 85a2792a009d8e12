"""Detectors that are broken or forged: refused when they are loaded, and never a verdict of "grounded"."""

from __future__ import annotations

import hashlib
import json
import pickle
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save
from sklearn.base import clone

from lrp4rag.classifiers import Features, Model, TokenModel
from lrp4rag.classifiers.card import Card
from lrp4rag.classifiers.decision import COLUMNS
from lrp4rag.classifiers.ensemble import Ensemble, Logistic, Network, Stacker
from lrp4rag.classifiers.folder import (
    BUNDLED,
    CARD,
    ESTIMATOR,
    FORMAT,
    FORMER,
    LARGEST,
    load_card,
    write_detector,
)
from lrp4rag.classifiers.network import Perceptron
from lrp4rag.classifiers.registry import CLASSIFIERS, candidates_of
from lrp4rag.classifiers.trees import Trees, tree_arrays
from lrp4rag.classifiers.vectors import FEATURE_VERSION
from lrp4rag.classifiers.verdict import Assessment
from lrp4rag.cli import main
from lrp4rag.features.plain import PlainTable
from lrp4rag.reader import Reader
from lrp4rag.training.vector_detector import fit_vector_detector
from lrp4rag.util.errors import InputError, RelevanceError
from lrp4rag.util.strict_json import sealed
from tests.classifiers.samples import READER, labelled_rows
from tests.cli.conftest import runner
from tests.features.records import random_record
from tests.hostile.damage import BYTES, NO_RECORD, PLACES, replaced
from tests.hostile.damage import put as place
from tests.hostile.strings import CONTROLS, MARKUP, obeyed
from tests.training.labelled import examples, write_jsonl

run = runner(main)

NUMBERS = [float("nan"), float("inf"), float("-inf"), 2, -1, 1e308, True, False, "0.5", None, [], {}]
COLUMNS_READ = len(PlainTable(("likelihoods",), ()).features)


def network(scale: float = 1.0, weight: float = 0.1) -> Network:
    weights = {
        name: np.full(tuple(array.shape), weight, dtype=np.float32)
        for name, array in Perceptron(COLUMNS_READ, 32).state_dict().items()
    }
    return Network(np.zeros(COLUMNS_READ, np.float32), np.full(COLUMNS_READ, scale, np.float32), weights)


def arrays() -> dict[str, Any]:
    stacker = Stacker(Logistic(np.ones(1, np.float32), 0.0), Logistic(np.ones(6, np.float32) / 6, 0.0))
    return dict(Ensemble({"own": (network(),)}, stacker).arrays())


def card(**changes: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "format": FORMAT,
        "classifier": "tokens",
        "settings": "own",
        "reader": READER,
        "composite": "attnlrp",
        "target": "response",
        "input": {
            "kind": "tokens",
            "blocks": {"own": {"groups": ["likelihoods"], "beside": []}},
            "reading": {
                "weights": [0.0, 1.0, *(0.0 for _ in COLUMNS[2:])],
                **{"offset": 0.0, "token_threshold": 0.5, "shifts": {"g": 0.1}},
            },
        },
        "feature_version": FEATURE_VERSION,
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
    content = learned if isinstance(learned, bytes) else save(arrays() if learned is None else learned)
    (folder / ESTIMATOR).write_bytes(content)
    put(folder, {**card(), "estimator_sha256": hashlib.sha256(content).hexdigest(), **changes})
    return folder


def put(folder: Path, record: dict[str, Any]) -> None:
    (folder / CARD).write_bytes(with_hash(record))


def with_hash(record: dict[str, Any]) -> bytes:
    content = {**record, "sha256": "0" * 64}
    with suppress(ValueError):  # it holds NaN
        content = sealed(record)
    return json.dumps(content).encode()


def changed(record: Any, place: str, value: Any) -> Any:
    name, _, rest = place.partition("/")
    if isinstance(record, list):
        k = int(name)
        return [*record[:k], changed(record[k], rest, value) if rest else value, *record[k + 1 :]]
    return {**record, name: changed(record[name], rest, value) if rest else value}


def record() -> Any:
    return random_record(12, text="All is well here now. Nothing of this is so at all.")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A detector whose card tests replace."""
    return saved(tmp_path_factory.mktemp("detector") / "d")


def require_refused(folder: Path, content: bytes, match: str | None = CARD) -> None:
    with replaced(folder / CARD, content):
        for load in (load_card, Model.load):
            with pytest.raises(InputError, match=match) as caught:
                load(folder)
            assert str(folder) in str(caught.value)


def test_the_detector_that_is_broken_below_is_whole(folder: Path) -> None:
    verdict = Model.load(folder).predict(record())
    assert verdict.probability is not None
    assert verdict.hallucinated is not None


NUMERIC = [
    *("threshold", "rows", "hallucinated", "input/reading/weights/1"),
    *("input/reading/offset", "input/reading/token_threshold", "operating_points/balanced/threshold"),
    *("operating_points/balanced/false_positive_rate", "domain/prompt tokens/low"),
]
LEGAL = {("domain/prompt tokens/low", 2), ("domain/prompt tokens/low", -1)} | {
    (f"input/reading/{name}", value) for name in ("weights/1", "offset") for value in (2, -1)
}
LEGAL |= {(name, 2) for name in ("rows", "hallucinated")}


@pytest.mark.parametrize("place", NUMERIC)
def test_a_number_that_is_none_or_out_of_range(place: str, folder: Path) -> None:
    whole = json.loads((folder / CARD).read_text())
    for value in NUMBERS:
        if isinstance(value, int) and (place, value) in LEGAL:
            continue
        if value == "0.5" and place not in ("rows", "hallucinated"):
            continue  # read as the number it spells
        require_refused(folder, with_hash(changed(whole, place, value)))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("input/reading/sentence_top", 3),  # of a former format
        ("input/reading/weights/1", 1e300),
        ("input/reading/tree_weight", float("inf")),
        *(("input/reading/weights", [1.0] * count) for count in (0, 1, len(COLUMNS) - 1, len(COLUMNS) + 1)),
        ("input/reading/shifts", {"g": "often"}),
        *(("input/reading/shifts", {"g": value}) for value in (float("nan"), 1e300)),
        *(("faithful_quantiles", [0.1, value]) for value in (float("nan"), 0.05, 1.1)),
        ("faithful_quantiles", [-0.1, 0.1]),
        *(("domain/prompt tokens", {"low": low, "high": 1.0}) for low in (2.0, float("nan"))),
        ("reference/entropy/faithful", [1, 2, 3]),
        ("reference/entropy/faithful", [5, 4, 3, 2, 1]),
        ("reference/entropy/faithful", [1, 2, 3, 4, float("nan")]),
        ("hallucinated", 11),
        *(("composite", value) for value in ("unknown", "\x1b[2J")),
        *(("reader", value) for value in ({}, "tiny")),
        ("reader/digest", 3),
        ("reader/chat_template", "yes"),
        ("reader/name", None),
        ("input/kind", "other"),
        ("input/blocks", {"own": {"groups": ["no such"]}}),
        ("input/blocks", {"own": {"groups": [], "beside": ["claims"]}}),
        (
            "input/blocks",
            {"own": {"features": ["entropy"], "profiles": [], "windows": [1]}},
        ),  # of version 0.1
        *(
            ("input/blocks", {"own": {"part": part, "depth": depth}})
            for part, depth in (("around", 7), ("whole", 0.5))
        ),
        *(
            ("input", {"kind": "vector", "vector": "total", "length": 9, "mode": "interpolate"} | change)
            for change in ({"vector": "no such"}, {"length": 10**9}, {"length": 0}, {"mode": "other"})
        ),
        ("training", {"data_hash": 3}),
        ("evidence", []),
        ("surplus", 1),
    ],
)
def test_a_card_that_does_not_hold_together(place: str, value: Any, folder: Path) -> None:
    whole = json.loads((folder / CARD).read_text())
    require_refused(folder, with_hash(changed(whole, place, value)))


def test_a_card_that_lacks_a_field(folder: Path) -> None:
    for missing in set(card()) - {"versions"}:
        whole = json.loads((folder / CARD).read_text())
        del whole[missing]
        require_refused(folder, json.dumps(whole).encode())


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("threshold", 0.9),
        ("settings", "other"),
        ("input/reading/weights/1", 2.0),
        ("operating_points/balanced/threshold", 0.9),
        ("reader/digest", "another"),
        ("estimator_sha256", "0" * 64),
    ],
)
def test_an_edited_card_is_refused(place: str, value: Any, folder: Path) -> None:
    edited = changed(json.loads((folder / CARD).read_text()), place, value)
    require_refused(folder, json.dumps(edited).encode(), "changed or is damaged")


NO_CARDS = [*NO_RECORD, b"\xed\xa0\x80", b'{"format": 99}', b'{"feature_version": "1"}']


@pytest.mark.parametrize("content", NO_CARDS)
def test_a_file_that_is_no_card(content: bytes, folder: Path) -> None:
    require_refused(folder, content, None)


@pytest.mark.parametrize("name", [CARD, ESTIMATOR])
@pytest.mark.parametrize("kind", [*PLACES, "missing"])
def test_a_file_that_is_none(name: str, kind: str, tmp_path: Path) -> None:
    folder = saved(tmp_path / "d")
    (folder / name).unlink()
    if kind != "missing":
        place(folder / name, kind)
    with pytest.raises(InputError, match=str(folder)):
        Model.load(folder)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *((key, float("nan")) for key in sorted(arrays())),
        *(("stacker/alone", float(f"{s}inf")) for s in "+-"),
    ],
)
def test_weights_that_are_no_numbers(key: str, value: float, tmp_path: Path) -> None:
    learned = arrays()
    learned[key] = np.full_like(learned[key], value)
    with pytest.raises(InputError, match=r"estimator\.safetensors.*NaN or Inf"):
        Model.load(saved(tmp_path / "d", learned))


@pytest.mark.parametrize(
    "spoil",
    [
        {"networks/own/0/mean": None},
        {"stacker/alone": None},
        {"networks/own/0/scale": np.zeros(1, np.float32)},
        {"networks/own/0/scale": np.full(1, -1.0, np.float32)},
        {"networks/own/0/scale": np.ones((2, 1), np.float32)},
        {"stacker/alone": np.zeros(7, np.float32)},
        {"stacker/alone": np.zeros((), np.float32)},
        {"networks/own/0/linear.weight": np.zeros((2, 1), np.float32)},
        {"networks/own/0/unknown": np.zeros(1, np.float32)},
        {"networks/other/0/mean": np.zeros(1, np.float32)},
        {"surplus": np.zeros(1, np.float32)},
        {"networks/own/0/mean": np.zeros(3, np.float32)},
        {"networks/own/0/mean": np.zeros((1, 1), np.float32)},
        dict.fromkeys(arrays()),
    ],
    ids=lambda spoil: ", ".join(spoil)[:40],
)
def test_weights_of_another_shape(spoil: dict[str, Any], tmp_path: Path) -> None:
    learned = {name: array for name, array in {**arrays(), **spoil}.items() if array is not None}
    with pytest.raises(InputError, match="not a token detector"):
        Model.load(saved(tmp_path / "d", learned))


def test_a_rule_that_weighs_trees_has_them(tmp_path: Path) -> None:
    reading = {**card()["input"]["reading"], "tree_weight": 1.0}
    changed_input = {**card()["input"], "reading": reading}
    trees = tree_arrays([Trees.constant(0.3)])
    assert Model.load(saved(tmp_path / "with", {**arrays(), **trees}, input=changed_input))
    for name, learned, changes in (
        ("without", arrays(), {"input": changed_input}),
        ("unweighed", {**arrays(), **trees}, {}),
    ):
        with pytest.raises(InputError, match="not a token detector"):
            Model.load(saved(tmp_path / name, learned, **changes))


def header(record: dict[str, Any], data: bytes = b"") -> bytes:
    content = json.dumps(record).encode()
    return len(content).to_bytes(8, "little") + content + data


def one_array(dtype: str, shape: list[int], end: int, size: int) -> bytes:
    return header({"a": {"dtype": dtype, "shape": shape, "data_offsets": [0, end]}}, bytes(size))


class Bomb:
    def __reduce__(self) -> Any:
        return open, ("exploded", "w")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04",
        b"\xff" * 8,
        (1 << 60).to_bytes(8, "little") + b"{}",
        header({})[:-1],
        pickle.dumps(Bomb()),
        one_array("F32", [1 << 40], 1 << 42, 0),
        one_array("F32", [1 << 62, 4], 4, 4),
        one_array("F32", [2], 4, 4),
        one_array("F32", [-1], 4, 4),
        one_array("F99", [1], 4, 4),
        one_array("F32", [1], 4, 9),
        one_array("BF16", [1], 2, 2),
        one_array("U8", [1], 1, 1),
    ],
    ids=range(14),
)
def test_a_file_that_holds_no_arrays(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes are checked before anything is allocated, and nothing is unpickled, though the hash agrees."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"estimator\.safetensors.*not a detector"):
        Model.load(saved(tmp_path / "d", content))
    assert not (tmp_path / "exploded").exists()


def test_a_file_too_large_is_not_read(tmp_path: Path) -> None:
    folder = saved(tmp_path / "d")
    with (folder / ESTIMATOR).open("r+b") as stream:
        stream.truncate(LARGEST + 1)
    with pytest.raises(InputError, match=ESTIMATOR):
        Model.load(folder)


@pytest.mark.parametrize("damage", BYTES)
def test_a_file_with_another_hash_is_refused(damage: str, folder: Path) -> None:
    path = folder / ESTIMATOR
    with replaced(path, BYTES[damage](path.read_bytes())), pytest.raises(InputError, match="corrupt"):
        Model.load(folder)


# Detectors of whole vectors.

VECTOR = {"kind": "vector", "vector": "response", "length": 16, "mode": "interpolate"}


@cache
def fitted(classifier: str) -> Model:
    rows, labels, _ = labelled_rows()
    with pytest.MonkeyPatch.context() as patch:
        first = clone(next(iter(candidates_of(classifier).values())))
        if classifier == "forest":
            first.set_params(randomforestclassifier__n_estimators=20)
        patch.setitem(CLASSIFIERS, classifier, {"first": first})
        return fit_vector_detector(rows, labels, classifier=classifier, features=Features(length=16))


def vector_detector(folder: Path, classifier: str, learned: Any, **changes: Any) -> Path:
    return saved(folder, learned, input={**VECTOR, **changes}, classifier=classifier)


@pytest.mark.parametrize("classifier", ["svm", "forest", "mlp", "threshold"])
def test_nan_in_what_a_vector_detector_learned(classifier: str, tmp_path: Path) -> None:
    arrays = fitted(classifier).arrays()
    Model.load(vector_detector(tmp_path / "whole", classifier, arrays))
    for name, array in arrays.items():
        if array.dtype.kind == "f":
            broken = {**arrays, name: np.full_like(array, np.nan)}
            with pytest.raises(InputError, match=r"NaN or Inf"):
                Model.load(vector_detector(tmp_path / name, classifier, broken))


@pytest.mark.parametrize(
    ("classifier", "learned"),
    [
        *((classifier, {}) for classifier in ("svm", "forest", "mlp", "threshold", "lstm", "unknown")),
        ("svm", {"sigmoid": np.zeros(2)}),
        ("threshold", {"sigmoid": np.zeros(3), "low": np.zeros(1)}),
        ("lstm", {"surplus": np.zeros(1)}),
    ],
    ids=str,
)
def test_a_vector_detector_of_something_else(classifier: str, learned: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a vector detector"):
        Model.load(vector_detector(tmp_path / "d", classifier, learned))


@pytest.mark.parametrize(
    ("classifier", "name", "spoil"),
    [
        ("svm", "scale", np.zeros_like),
        ("svm", "mean", lambda array: array[:1]),
        ("svm", "weights", lambda array: array[:1]),
        *((classifier, "surplus", np.zeros) for classifier in ("svm", "forest", "mlp", "threshold")),
        ("mlp", "inner", lambda array: array[:3]),
        ("forest", "left", np.zeros_like),
        ("forest", "left", lambda array: array[:1]),
        ("forest", "column", lambda array: np.full_like(array, 99)),
        ("forest", "roots", lambda array: array + 10**6),
        ("threshold", "cut", lambda array: np.zeros(2)),
    ],
)
def test_arrays_of_a_vector_detector_of_another_shape(
    classifier: str, name: str, spoil: Any, tmp_path: Path
) -> None:
    """A tree that leads back to its root would be walked for ever."""
    learned = fitted(classifier).arrays()
    broken = {**learned, name: spoil(learned.get(name, 1))}
    with pytest.raises(InputError, match="not a vector detector"):
        Model.load(vector_detector(tmp_path / "d", classifier, broken))


@pytest.mark.parametrize("change", [{"vector": "segments"}, {"vector": "matrix"}, {"length": 17}], ids=str)
def test_a_vector_detector_of_other_vectors(change: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a vector detector"):
        Model.load(vector_detector(tmp_path / "d", "svm", fitted("svm").arrays(), **change))


def test_a_detector_of_a_former_format_is_refused_and_may_be_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    put(folder, card(format=3, estimator_sha256="0" * 64))
    (folder / FORMER).write_bytes(b"PK")
    former, now = f"format 3 and feature version {FEATURE_VERSION}", f"{FORMAT} and {FEATURE_VERSION}"
    with pytest.raises(InputError, match=rf"{former}.* reads {now}; train it again"):
        Model.load(folder)
    fitted("threshold").save(folder)
    assert sorted(path.name for path in folder.iterdir()) == [CARD, ESTIMATOR]


# Where it is written.


@pytest.mark.parametrize("content", ["", "{}", '{"my business card": 1}', "[1]", '{"format": 3}'], ids=str)
def test_a_card_of_somebody_else_stays(content: str, tmp_path: Path) -> None:
    (tmp_path / CARD).write_text(content)
    with pytest.raises(InputError, match="other files"):
        fitted("threshold").save(tmp_path)
    assert (tmp_path / CARD).read_text() == content


def test_a_folder_called_like_a_card_stays(tmp_path: Path) -> None:
    place(tmp_path / CARD, "full folder")
    with pytest.raises(InputError, match="other files"):
        fitted("threshold").save(tmp_path)
    assert (tmp_path / CARD / "thesis.tex").read_text() == "years of work"


def test_a_detector_that_cannot_be_put_in_place_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fitted("threshold").save(tmp_path / "d")
    before = (folder / CARD).read_bytes()

    def fail(self: Path, target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(KeyboardInterrupt):
        fitted("threshold").save(folder)
    assert (folder / CARD).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["d"]


def test_the_folder_that_the_command_runs_in_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="runs in"):
        fitted("threshold").save(".")
    assert fitted("threshold").save("d" * 255).is_dir()


# At the verdict.


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, float("nan")) for name in ("response", "logits", "by_segment", "entropy", "around")),
        *((name, float("inf")) for name in ("response", "around")),
        ("entropy", float("-inf")),
    ],
)
def test_relevance_or_a_signal_that_is_no_number_has_no_verdict(
    name: str, value: float, folder: Path
) -> None:
    detector, given = Model.load(folder), record()
    if name in ("response", "logits", "by_segment"):
        relevances, _, _ = labelled_rows()
        detector, relevance = fitted("threshold"), relevances[0]
        array = (
            np.ones((4, len(relevance.response)), np.float32) if name == "by_segment" else relevance.logits
        )
        broken: Any = replace(relevance, **{name: with_last(array, value)})
    elif name == "around":
        broken = replace(given, states={name: with_last(given.states[name], value)})
    else:
        broken = replace(given, signals={**given.signals, name: with_last(given.signals[name], value)})
    for judge in (detector.predict, lambda one: detector.predict_proba([one])):
        with pytest.raises(RelevanceError, match=f"'{name}' holds NaN or Inf"):
            judge(broken)


def with_last(array: Any, value: float) -> Any:
    changed = np.array(array, np.float32)
    changed[..., -1] = value
    return changed


@pytest.mark.parametrize("value", [float("nan"), -0.1, 1.1, float("inf")])
def test_a_probability_that_is_none_has_no_verdict(value: float, folder: Path) -> None:
    """Whatever made it: a bug in a detector must not pass for "grounded"."""

    class Broken(TokenModel):
        def score(self, record: Any) -> Assessment:
            return Assessment(value)

    whole = Model.load(folder)
    assert isinstance(whole, TokenModel)
    broken = Broken(whole.card, whole.ensemble)
    for judge in (broken.predict, lambda one: broken.predict_proba([one])):
        with pytest.raises(RelevanceError, match="no verdict"):
            judge(record())


# On the command line.


def test_no_clean_exit_with_a_broken_detector(
    reader_folder: Path, tiny_reader: Reader, tmp_path: Path
) -> None:
    rows, labels, _ = labelled_rows()
    own = [replace(one, reader=tiny_reader.identity.as_dict()) for one in rows]
    whole = fit_vector_detector(own, labels, classifier="threshold")
    detector = whole.save(tmp_path / "whole")
    learned = {**whole.arrays(), "sigmoid": np.array([1.0, np.nan])}
    broken = write_detector(tmp_path / "broken", whole.card, learned)
    data = write_jsonl(examples(1), tmp_path / "one.jsonl")
    common = ["analyse", data, "--reader", reader_folder, "--json"]
    assert run(*common, "--detector", detector).stdout.startswith("{")
    result = run(*common, "--fail-on-hallucination", "--detector", broken, code=2)
    assert result.stdout == ""
    assert "NaN or Inf" in result.stderr


@pytest.mark.parametrize("text", [*CONTROLS[:2], *CONTROLS[9:12], *MARKUP[:3]])
def test_info_shows_what_a_card_says_and_obeys_none_of_it(text: str, tmp_path: Path) -> None:
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


def test_the_bundled_detector_passes() -> None:
    assert isinstance(load_card(BUNDLED), Card)
    Model.load(BUNDLED)
