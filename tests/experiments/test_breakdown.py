"""`python -m experiments breakdown`: stored scores divided, and like beside like."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments import breakdown
from experiments.breakdown import StoredRows, claims_of, read_stored
from experiments.systems.encoders import Training
from experiments.systems.scores import SystemScores, write_scores
from lrp4rag.example import Example, Label
from lrp4rag.training.folds import ONCE
from lrp4rag.training.localisation import Marking
from lrp4rag.training.validation import Outcome
from lrp4rag.util.errors import InputError
from tests.training.labelled import examples, write_jsonl

ROOT = Path(__file__).parents[2]
SLOW = ("lrp4rag, learned from the sample", "fine-tuned-llm")
NAMES = (
    "lrp4rag",
    "novel-words",
    "length",
    "lexical",
    "log-probability",
    "entailment",
    "lettucedetect",
    "grounded-in-context",
    *SLOW,
)


def word_starts(text: str) -> list[int]:
    return [match.start() for match in re.finditer(r"\S+", text)]


def data(count: int = 12) -> list[Example]:
    """Responses of growing length, every second hallucinated in its first word."""
    return [
        replace(
            one,
            response=f"{one.response}{' more' * k}",
            labels=(Label(0, 4, "Evident Conflict", implicit_true=k == 1),) if k % 2 else (),
        )
        for k, one in enumerate(examples(count)[:count])
    ]


def scores(
    rows: list[Example], tokens: int | None = None, known: int | None = None, seed: int = 0
) -> SystemScores:
    count = len(rows)
    drawn = np.random.default_rng(seed).random(count)
    probabilities = np.where(np.arange(count) < (known or count), drawn, np.nan)
    halves = np.array_split(np.arange(count), 2)
    marking = None
    if tokens is not None:
        marks = np.linspace(0, 1, tokens)
        marking = Marking(marks, marks > 0.5, marks > 0.5)
    return SystemScores(
        Outcome(probabilities[None], np.nan_to_num(probabilities)[None] >= 0.5, ("", "")),
        marking,
        np.isfinite(probabilities),
        ((halves[0], halves[1][:2], drawn[:2]), (halves[1], halves[0][:2], drawn[:2])),
    )


@pytest.fixture
def rows() -> list[Example]:
    return data()


@pytest.fixture
def compared(tmp_path: Path, rows: list[Example], tiny_reader) -> Path:
    """A folder as a comparison leaves it."""
    tokens = sum(len(tiny_reader.encode(row).response_ids) for row in rows)
    folder, ids = tmp_path / "compared" / "scores", tuple(row.id for row in rows)
    for k, name in enumerate(NAMES):
        marked = tokens if name in ("lrp4rag", "lettucedetect", "grounded-in-context") else None
        write_scores(folder, name, {}, ids, scores(rows, marked, 8 if name in SLOW else None, seed=k))
    write_scores(folder, "ragulator-encoder", {}, ids, scores(rows, seed=NAMES.index("entailment")))
    cost = {"seconds": 1.0, "forwards": 2.0, "peak_bytes": 10}
    costs = {"systems": dict.fromkeys(("lrp4rag", "saplma-linear"), cost), "conditions": "none"}
    (folder.parent / "costs.json").write_text(json.dumps(costs))
    return folder.parent


def test_the_page_is_made_of_stored_scores_and_labels(
    run, compared: Path, rows: list[Example], tmp_path: Path, tiny_reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(breakdown, "load_reader", lambda **_: tiny_reader)
    monkeypatch.setattr(breakdown.Embedder, "load", lambda **_: None)
    monkeypatch.setattr(breakdown, "starts_of", lambda _: word_starts)
    study, out = ROOT / "experiments/results/detector/results.json", tmp_path / "out"
    given = write_jsonl(rows, tmp_path / "data.jsonl")
    options = ["--compared", compared, "--study", study, "--out", out, "--bootstrap", 20]
    run("breakdown", given, *options)
    page, record = (out / "README.md").read_text(), json.loads((out / "results.json").read_text())
    assert "entailment and ragulator-encoder give every response the same probability" in page
    assert record["systems"] == len(NAMES) - 2  # ours twice; the twins are one
    assert record["implicit"]["all"]["rows"] == len(rows)
    assert record["rows"] == len(rows)
    assert ONCE.words in page
    made = {"strata.csv", "breakdown.png", "breakdown.svg", "claims.png", "claims.svg"}
    assert {path.name for path in out.iterdir()} >= made
    assert record["claims"]["count"] == len(rows)
    others = ["entailment", "grounded-in-context", "novel-words", "length", "lexical", "log-probability"]
    assert list(record["here"]) == ["lrp4rag", "lettucedetect", *others]  # slow ones judged too few
    assert list(record["spans_here"]) == ["lrp4rag", "lettucedetect", "grounded-in-context"]
    one = record["here"]["lrp4rag"]["published"]
    assert "F1 at 17.8 % |" in page
    assert f" | {100 * one['f1']['value']:.1f} [" in page


def test_scores_of_what_is_not_there_are_refused(compared: Path, rows: list[Example]) -> None:
    with pytest.raises(InputError, match="not in the data"):
        read_stored(rows[1:], compared / "scores")
    (compared / "scores" / "length.json.xz").write_bytes(b"no scores")
    with pytest.raises(InputError, match="not the scores of a system"):
        read_stored(rows, compared / "scores")
    with pytest.raises(InputError, match="no scores"):
        read_stored(rows, compared)


def test_claims_are_cut_as_the_system_cuts_them_and_scored_by_their_highest_token() -> None:
    said = "The bridge is very old indeed. " * 5
    rows = [
        replace(one, response=said.strip(), labels=(Label(0, 10),) if k else ())
        for k, one in enumerate(examples(2)[:2])
    ]
    words = [(match.start(), match.end()) for match in re.finditer(r"\S+", said)]
    marks = np.concatenate([np.linspace(0, 0.5, len(words)), np.linspace(0, 1, len(words))])
    marking = Marking(marks, marks > 0.5, marks > 0.5)
    given = StoredRows(tuple(rows), {"grounded-in-context": replace(scores(rows), marking=marking)})
    found = claims_of(given, [words, words], word_starts, 5)
    # Thirty words fit into one claim.
    assert (found.count, found.mean, found.longest) == (2, 30, 30)
    assert found.lengths == {"faithful": (0, 0, 1, 0, 0, 0), "annotated": (0, 0, 1, 0, 0, 0)}
    (group,) = found.groups
    assert (group.shortest, group.longest, group.claims, group.annotated) == (16, 30, 2, 1)
    assert group.systems["grounded-in-context"]["auroc"].value == 1
    assert group.systems["the claim's length"]["auroc"].value == 0.5
    with pytest.raises(ValueError, match="other tokens"):
        claims_of(given, [words, words[1:]], word_starts, 5)


def test_thirds_are_by_length_and_shares_by_characters(rows: list[Example]) -> None:
    found = breakdown.thirds(rows)
    assert [len(numbers) for *_, numbers in found] == [4, 4, 4]
    assert [low <= high for _, low, high, _ in found] == [True] * 3
    assert breakdown.share_of(rows[0]) == 0
    one = replace(rows[0], response="abcdefgh", labels=(Label(0, 2), Label(1, 4)))
    assert breakdown.share_of(one) == 0.5
    assert breakdown.relaxed(rows).sum() == sum(bool(row.labels) for row in rows) - 1


def test_precision_at_a_prevalence_weighs_the_classes() -> None:
    labels, flagged = np.array([True, True, False, False]), np.array([True, False, True, False])
    groups = np.array(["a", "b", "c", "d"])
    found = breakdown._weighed(labels, flagged, groups, 0.1, 10)
    assert found["precision"].value == pytest.approx(0.1)
    assert found["recall"].value == 0.5


def test_beside_published_rows_the_classes_are_weighed_as_theirs(rows: list[Example]) -> None:
    given = StoredRows(tuple(rows), {"length": scores(rows)})
    share = float(given.labels.mean())
    found = breakdown.here(given, ["length"], share, 10)["length"]
    assert found.published == found.metrics
    labels, flagged = given.labels, given.scores["length"].outcome.flagged[0]
    assert found.metrics["precision"].value == pytest.approx((labels & flagged).sum() / flagged.sum())
    fewer = breakdown.here(given, ["length"], share / 3, 10)["length"]
    assert fewer.published["precision"].value < fewer.metrics["precision"].value
    assert fewer.published["recall"] == fewer.metrics["recall"]


def test_a_threshold_of_a_fold_is_chosen_on_the_others(rows: list[Example], tiny_reader) -> None:
    offsets = [tiny_reader.encode(row).response_offsets for row in rows]
    owner = np.repeat(np.arange(len(rows)), list(map(len, offsets)))
    some = scores(rows, len(owner))
    given = StoredRows(tuple(rows), {"lettucedetect": some})
    found = breakdown.lettuce(given, offsets, 10)
    assert len(found.thresholds) == 2
    # What a fold's own tokens score does not move its threshold.
    assert some.marking is not None
    moved = np.where(np.isin(owner, some.outside[0][0]), 1 - some.marking.scores, some.marking.scores)
    other = replace(some, marking=replace(some.marking, scores=moved))
    again = breakdown.lettuce(StoredRows(tuple(rows), {"lettucedetect": other}), offsets, 10)
    assert again.thresholds[0] == found.thresholds[0]
    assert again.thresholds[1] != found.thresholds[1]


def test_steps_count_the_last_batch() -> None:
    training = Training(epochs=2, batch=8)
    assert [training.steps(256), training.steps(257)] == [64, 66]
