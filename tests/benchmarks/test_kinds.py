"""The benchmark of flag rates by kind, on a miniature set and a detector of known verdicts."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks.elsewhere.judging import LENGTH, OURS
from benchmarks.elsewhere.sets import PAIRS, Item, read_pairs
from benchmarks.kinds import folds
from benchmarks.kinds.__main__ import main
from benchmarks.kinds.judging import (
    EVERYDAY,
    EVIDENCE,
    MINIMAL,
    RAGTRUTH,
    Score,
    cases_of_evidence,
    cases_of_pairs,
    has_value_of,
    out_of_fold,
    write_scores,
)
from benchmarks.kinds.page import ALL, WITHIN, flagged_at, measure, write
from lrp4rag.classifiers.model import Model
from lrp4rag.classifiers.verdict import Contradiction
from lrp4rag.example import Example, Label
from lrp4rag.features.plain import PlainTable
from lrp4rag.judge import Detector
from lrp4rag.reader.comparer import Comparer
from lrp4rag.training import token_folds
from lrp4rag.training.corpus import Corpus
from lrp4rag.training.token_folds import cross_validate_tokens
from lrp4rag.training.tokens import tokens_of
from lrp4rag.util.errors import InputError
from tests.benchmarks.test_elsewhere import StandIn, pairs_of
from tests.benchmarks.test_elsewhere import write as write_sets
from tests.training.stored import stored

RESULTS = Path(__file__).parents[2] / "docs" / "results"


def edit(kind: str, passage: int, old: str, new: str, **spans: list[str]) -> dict[str, Any]:
    replacements = [{"passage": passage, "old": old, "new": new}]
    return {"kind": kind, "replacements": replacements, "wrong": list(spans), "spans": spans}


EDITS = [
    edit("number", 0, "30 metres", "45 metres", faithful_1=["30 metres"], faithful_2=["30 metres"]),
    edit("entity", 1, "Bergen", "Oslo", faithful_2=["Bergen"]),
    edit("harmless_1", 0, "is 30 metres high", "has a height of 30 metres"),
]
BASES = ("b1", "b2")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = write_sets(tmp_path / "data", {PAIRS: [row for base in BASES for row in pairs_of(base)]})
    lines = [json.dumps({"base": base, "edits": EDITS}) + "\n" for base in BASES]
    (folder / PAIRS / "evidence.jsonl").write_text("".join(lines))
    return folder


def named(text: str, response: str, instead: str, passage: int, passages: Sequence[str]) -> Contradiction:
    start, at = response.index(text), passages[passage].index(instead)
    return Contradiction(start, start + len(text), text, instead, passage, at, at + len(instead), margin=1.0)


class Contradicting(StandIn):
    """Flags and contradicts heights that the first passage has otherwise."""

    def judge_many(self, examples: Sequence[Example], *, evidence: bool) -> list[SimpleNamespace]:
        verdicts = super().judge_many(examples, evidence=evidence)
        for example, verdict in zip(examples, verdicts, strict=True):
            verdict.contradictions = ()
            verdict.probability = 0.2
            response = example.response or ""
            for ours, theirs in (("45 metres", "30 metres"), ("30 metres", "45 metres")):
                if ours in response and theirs in example.passages[0]:
                    verdict.contradictions = (named(ours, response, theirs, 0, example.passages),)
                    verdict.probability = 0.9
        return verdicts


@pytest.fixture
def detector(monkeypatch: pytest.MonkeyPatch) -> Contradicting:
    detector = Contradicting()
    monkeypatch.setattr(Detector, "load", lambda *_, **__: detector)
    return detector


def run(*words: str | Path) -> Any:
    return CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)


def scores_of(path: Path) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in map(json.loads, path.read_text().splitlines())}


# Cases


def test_edited_passages_as_cases(data: Path) -> None:
    items = read_pairs(data / PAIRS / "pairs.jsonl")
    cases = cases_of_evidence(data / PAIRS / "evidence.jsonl", items)
    first = [case for case in cases if case.example.source == "b1"]
    assert [(case.kind, case.example.hallucinated, case.twin) for case in first] == [
        ("original", False, None),
        ("original", False, None),
        ("number", True, "b1_faithful_1"),
        ("number", True, "b1_faithful_2"),
        ("unaffected", False, None),
        ("entity", True, "b1_faithful_2"),
        ("harmless_1", False, None),
        ("harmless_1", False, None),
    ]
    case = first[2]
    assert case.example.passages[0] == "The mast of Brel is 45 metres high."
    response = case.example.response or ""
    right = named("30 metres", response, "45 metres", 0, case.example.passages)
    wrong = named("30 metres", response, "Bergen", 1, case.example.passages)
    assert (case.inside(right), case.is_right(right), case.is_right(wrong)) == (True, True, False)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (edit("number", 0, "31 metres", "45 metres"), "edits.replacements.old"),
        (edit("number", 7, "30 metres", "45 metres"), "edits.replacements.old"),
        (edit("number", 0, "30 metres", "45 metres", faithful_1=["31"]), "edits.spans"),
        (edit("number", 0, "30 metres", "45 metres", faithful_1=[]), "edits.spans"),
    ],
)
def test_an_edit_of_what_is_not_there_is_named(change: dict[str, Any], field: str, data: Path) -> None:
    path = data / PAIRS / "evidence.jsonl"
    path.write_text(json.dumps({"base": "b1", "edits": [change]}))
    with pytest.raises(InputError) as caught:
        cases_of_evidence(path, read_pairs(data / PAIRS / "pairs.jsonl"))
    assert (caught.value.line, caught.value.field) == (1, field)


@pytest.mark.parametrize(
    ("text", "instead", "right"),
    [
        ("2.9 kWh", "5.6 kWh", True),
        ("2.9", "5.6", True),
        ("2.9 kWh", "6.5 kWh", False),
        ("ProBake 46", "the ProBake 71", True),
        ("ProBake 46", "ProBake 46", False),
        ("200", "180", False),  # it stands in the faithful answer
        ("nine", "two", True),
        ("nine", "2", True),
        ("nine", "three", False),
        ("90 seconds", "half a minute", True),
        ("90 seconds", "90 seconds", False),
    ],
)
def test_the_right_value_is_that_of_the_faithful_answer(text: str, instead: str, right: bool) -> None:
    twin = "Of the ProBake 71, P2 uses 5.6 kWh, below 200 °C, for two loaves in 30 seconds."
    response = "Of the ProBake 46, P2 uses 2.9 kWh, below 200 °C, for nine loaves in 90 seconds."
    assert has_value_of(twin, response, named(text, response, instead, 0, [instead])) is right


def test_a_faulty_answer_is_a_copy_of_the_right_one_that_it_shares_words_with() -> None:
    texts = {
        "faithful_1": "The mast of Brel is 30 metres high, and it was built in Bergen in 1921.",
        "faithful_2": "They put it up in 1921, in Bergen: thirty metres, the tallest one there is in Brel.",
        "near": "The mast of Brel is 45 metres high, and it was built in Bergen in 1921.",
        "free": "They put it up in 1931, in Bergen: thirty metres, the tallest one there is in Brel.",
        "anew": "Brel has a mast of 45 metres.",
    }
    items = [
        Item(
            Example(
                "?",
                ("Brel.",),
                text,
                id=kind,
                source="b1",
                labels=(Label(0, 4),) * (kind in "near free anew"),
            ),
            kind,
        )
        for kind, text in texts.items()
    ]
    twins = [case.twin for case in cases_of_pairs(items)]
    assert twins == [None, None, "faithful_1", "faithful_2", None]


# Measures, by hand


def test_equal_scores_are_flagged_together() -> None:
    scores = np.array([0.9, 0.8, 0.8, *[0.5] * 48, 0.95])
    reference = np.array([True, True, False, *[True] * 48, False])
    flags = flagged_at(scores, reference, np.ones((1, len(scores))))[0]
    assert np.flatnonzero(flags).tolist() == [0, 1, 2, 51]  # 2 of 50 right answers; the next ones are 48
    twice = np.where(scores == 0.9, 3.0, 1.0)[None]
    assert np.flatnonzero(flagged_at(scores, reference, twice)[0]).tolist() == [0, 51]  # 3 of 52, and not 4


def score(id: str, kind: str, probability: float | None, **fields: Any) -> Score:
    label = 0 if kind.startswith(("faithful", "refusal")) else 1
    return Score(id=id, set=MINIMAL, kind=kind, label=label, probability=probability, threshold=0.5, **fields)


def test_measures_by_hand() -> None:
    result = measure(
        [
            score("a.0", "faithful_1", 0.6, words=9, novel=0.0),
            score("b.0", "faithful_1", 0.2, words=9, novel=0.0),
            score("c.0", "refusal", 0.9, words=9, novel=0.0),
            score("a.0~n", "number", 0.7, words=9, novel=0.0),
            score("b.0~n", "number", 0.5, words=8, novel=0.5),
            score("b.0~e", "negation", None, words=9, novel=0.0),
        ]
    )
    faults = {line["kind"]: line for line in result["faults"]}
    assert (result["questions"], result["thresholds"][OURS]) == (3, 0.7)
    assert [faults[kind]["flagged"][OURS].value for kind in ("number", "negation", ALL)] == [0.5, 0, 1 / 3]
    assert [faults[kind]["flagged_by_default"].value for kind in ("number", "negation")] == [1, 0]
    assert faults["number"]["auroc"][OURS].value == 0.75
    assert faults["number"]["auroc"][LENGTH].value == 0.25
    assert faults["number"]["balanced_accuracy"].value == 0.75
    assert (faults["number"]["copies"], faults["number"]["above"][OURS].value) == (2, 1)
    assert faults["negation"]["above"][LENGTH].value == 0.5
    right = {line["kind"]: line for line in result["right"]}
    assert right["right refusal"]["flagged"][OURS].value == 1
    assert (right[ALL]["answers"], right[ALL]["flagged_by_default"].value) == (2, 0.5)


def test_a_set_of_one_class_is_refused() -> None:
    with pytest.raises(InputError):
        measure([score("a.0", "faithful_1", 0.6)])


def test_scores_out_of_fold() -> None:
    kinds = (["Evident Conflict"], ["Subtle Conflict", "Evident Baseless Info"], [], [])
    examples = [
        Example(
            "How high?",
            ["It is 30 metres high."],
            "45 metres high",
            id=str(k),
            source=f"s{k}",
            labels=tuple(Label(0, 2, kind) for kind in labels),
            generator="ab"[k % 2],
        )
        for k, labels in enumerate(kinds)
    ]
    scores = list(out_of_fold(RAGTRUTH, examples, [0.9, 0.4, 0.3, 0.6]))
    assert [line.kind for line in scores] == ["Evident Conflict", "Subtle Conflict", "faithful", "faithful"]
    lines = {line["generator"]: line for line in measure(scores)["generators"]}
    assert {name: line["conflicts"] for name, line in lines.items()} == {ALL: 1, WITHIN: 1, "a": 1, "b": 0}
    aurocs = {name: line["auroc"][OURS].value for name, line in lines.items()}
    assert aurocs == {ALL: 0.75, WITHIN: 0.5, "a": 1, "b": 0}
    assert lines["b"]["auroc_conflicts"][OURS].value is None


# The commands


def test_scores_and_their_page(data: Path, tmp_path: Path, detector: Contradicting) -> None:
    out = tmp_path / "out"
    detector.fails_after = 2
    assert run("judge", "--data", data, "--out", out).exit_code == 1
    assert len(scores_of(out / "raw" / "pairs.jsonl")) == 10
    detector.fails_after = 10**6
    assert run("judge", "--data", data, "--out", out).exit_code == 0
    assert len(detector.asked) == 2 + 2 * 4  # what was judged is not judged again: four passages each
    scores = scores_of(out / "raw" / f"{EVIDENCE}.jsonl")
    assert len(scores) == 16
    assert scores["b1_number_faithful_1"]["contradictions"][0]["right"]
    folds = [("everyday", "a01.0", 0.1), ("everyday", "a01.1~name", 0.8), ("made", "m", 0.3)]
    folds += [("annotated", "right", 0.2), ("annotated", "wrong", 0.9)]
    lines = [json.dumps({"id": id, "set": name, "probability": number}) for name, id, number in folds]
    (tmp_path / "folds.jsonl").write_text("\n".join(lines))
    right = {"id": "right", "question": "Who?", "passages": ["Ada."], "response": "Ada.", "labels": []}
    wrong = {**right, "id": "wrong", "response": "Bo.", "labels": [{"start": 0, "end": 2, "kind": "name"}]}
    (tmp_path / "labelled.jsonl").write_text("\n".join(map(json.dumps, (right, wrong))))
    result = run(
        "page", "--out", out, "--folds", tmp_path / "folds.jsonl", tmp_path / "labelled.jsonl", "--json"
    )
    assert result.exit_code == 0, result.stderr
    results = json.loads(result.stdout)
    assert list(results["sets"]) == [MINIMAL, EVIDENCE, EVERYDAY, RAGTRUTH]
    faults = {line["kind"]: line for line in results["sets"][EVIDENCE]["faults"]}
    assert faults["number"]["named"]["right"] == faults["number"]["named"]["flagged"] == 4
    assert faults["name"]["flagged_by_default"]["value"] == 0
    page = (out / "README.md").read_text()
    write(out)
    assert page == (out / "README.md").read_text()
    for name in results["sets"]:
        assert f"(flagged-{name}.png)" in page
        assert (out / f"flagged-{name}.png").stat().st_size
    texts = page + "".join(path.read_text() for path in (out / "raw").iterdir())
    assert str(tmp_path) not in texts
    assert "metres" not in texts  # no text of the data


def test_scores_of_another_detector_are_refused(data: Path, tmp_path: Path, detector: Contradicting) -> None:
    assert run("judge", "--data", data, "--out", tmp_path / "out", "--limit", "1").exit_code == 0
    assert len(scores_of(tmp_path / "out" / "raw" / "pairs.jsonl")) == 5
    detector.card.sha256 = "e" * 64
    result = run("judge", "--data", data, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "scores of another card" in result.stderr


def test_a_page_needs_scores_each_set_once(tmp_path: Path) -> None:
    assert run("page", "--out", tmp_path).exit_code == 2
    (tmp_path / "raw").mkdir()
    for name in ("a", "b"):
        write_scores(
            tmp_path / "raw" / f"{name}.jsonl", [score("a", "faithful_1", 0.1), score("b", "number", 1)]
        )
    result = run("page", "--out", tmp_path)
    assert result.exit_code == 2
    assert "a.jsonl has scores of the set pairs too" in result.stderr


@pytest.fixture
def learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> folds.Learned:
    """Thirty stored responses, in three folds of two inner ones."""
    monkeypatch.setattr(folds, "ONCE", replace(folds.ONCE, folds=3))
    monkeypatch.setattr(token_folds, "FOLDS", 2)
    rows = stored(tmp_path / "store", 30)
    blocks = {"plain": PlainTable(("likelihoods",), ())}
    return folds.Learned(Corpus.of(rows.examples), rows, tokens_of(rows, blocks), blocks)


def test_a_fold_s_detector_is_that_of_cross_validation(learned: folds.Learned, tmp_path: Path) -> None:
    out = tmp_path / "detectors"
    assert not folds.are_fitted(out)
    folds.fit_folds(learned, out, jobs=1)
    assert folds.are_fitted(out)
    held = [set(json.loads(path.read_text())) for path in sorted(out.glob(f"*/{folds.SOURCES}"))]
    assert len(held) == 3
    assert sorted(chain(*held)) == sorted(set(learned.tokens.groups.tolist()))
    expected = cross_validate_tokens(learned.tokens, folds.ONCE).outcome.probabilities[0]
    records = list(learned.rows.readings())
    for number, sources in enumerate(held):
        model = Model.load(out / str(number))
        rows = [row for row, source in enumerate(learned.tokens.groups) if source in sources]
        assert model.card.rows == len(records) - len(rows)
        np.testing.assert_allclose(
            model.predict_proba([records[row] for row in rows]), expected[rows], rtol=1e-5
        )
    again = replace(learned, blocks={})  # nothing is fitted again
    folds.fit_folds(again, out, jobs=1)


def test_questions_are_judged_by_those_who_did_not_learn_from_them(
    tmp_path: Path, detector: Contradicting, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparer = SimpleNamespace(networks=(0, 1), _learned={"everyday-a01": 0, "everyday-a02": 1})
    loaded, asked = list[str](), set[tuple[str, str, tuple[int, ...]]]()
    judge_many = detector.judge_many

    def load(folder: Path, **_: Any) -> Contradicting:
        loaded.append(folder.name)
        return detector

    def judge(examples: Sequence[Example], **options: Any) -> Any:
        asked.add((loaded[-1], str(examples[0].source), Comparer._networks_for(comparer, None)))  # type: ignore[arg-type]
        return judge_many(examples, **options)

    monkeypatch.setattr(Detector, "load", load)
    monkeypatch.setattr(detector, "judge_many", judge)
    for number, source in enumerate(("everyday-a01", "everyday-a02")):
        path = tmp_path / "detectors" / str(number) / folds.SOURCES
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps([source]))
    (tmp_path / "raw").mkdir()
    folds.judge_folds(tmp_path / "detectors", tmp_path / "raw", "float32", every=1, edits_every=1)
    assert asked == {("0", "everyday-a01", (1,)), ("1", "everyday-a02", (0,))}
    scores = scores_of(tmp_path / "raw" / f"{folds.HELD}.jsonl")
    edits = scores_of(tmp_path / "raw" / f"{folds.HELD_EDITS}.jsonl")
    assert {row["source"] for row in (*scores.values(), *edits.values())} == {"everyday-a01", "everyday-a02"}
    assert all((row["twin"] in scores) for row in scores.values() if row["label"])
    kinds = Counter(row["kind"] for row in edits.values() if row["source"] == "everyday-a01")
    assert kinds.pop("original") > 1
    assert set(kinds.values()) == {1}


@pytest.mark.parametrize("folder", [RESULTS / "kinds", RESULTS / "questions"], ids=lambda folder: folder.name)
def test_the_page_is_what_its_scores_make(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "raw", tmp_path / "raw")
    write(tmp_path)
    for name in ("README.md", "results.json"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()
