"""SelfCheckGPT on hand-made samples: numbers worked out from the definitions of its paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lrp4rag.experiments.systems import selfcheck
from lrp4rag.experiments.systems.measurement import Measured
from lrp4rag.experiments.systems.samples import Samples
from lrp4rag.experiments.systems.selfcheck import checked, denied, not_entailed, unlike
from lrp4rag.training.rows import Rows
from tests.experiments.systems.entailed_kit import StandInKit, WordSupport, towns
from tests.tiny import bridge_example
from tests.training.labelled import extraction

TWO = bridge_example(response="It is old. It is new.")
SAMPLES = Samples(("It is old.", "It is very old. Yes."))


# From doubts about pairs to scores.


def test_doubts_are_averaged_over_samples_and_then_over_sentences() -> None:
    one = bridge_example(response="No.")
    table = {
        ("It is old.", "It is old."): 0.0,
        ("It is very old. Yes.", "It is old."): 0.5,
        ("It is old.", "It is new."): 0.75,
        ("It is very old. Yes.", "It is new."): 1.0,
        ("Maybe.", "No."): 0.125,
    }
    calls = []

    def doubt(pairs: list[tuple[str, str]]) -> np.ndarray:
        calls.append(pairs)
        return np.array([table[pair] for pair in pairs])

    first, other = checked([TWO, one], [SAMPLES, Samples(("Maybe.",))], doubt)
    assert first.suspicion.spans.tolist() == [[0, 10], [11, 21]]
    assert first.suspicion.scores.tolist() == [0.25, 0.875]
    assert first.numbers.tolist() == [0.5625]
    assert other.numbers.tolist() == other.suspicion.scores.tolist() == [0.125]
    assert [(row.asked, row.unanswered) for row in (first, other)] == [(4, 0), (1, 0)]
    assert calls == [list(table)]  # all at once


def test_without_samples_or_any_answer_there_is_no_number() -> None:
    silent, drawn = checked([TWO, TWO], [Samples(()), SAMPLES], lambda pairs: np.full(len(pairs), np.nan))
    for row in (silent, drawn):
        assert np.isnan(row.numbers).tolist() == [True]
        assert row.suspicion is None
    assert (silent.asked, silent.unanswered) == (0, 0)
    assert (drawn.asked, drawn.unanswered) == (4, 4)


def test_an_answer_that_is_missing_counts_half() -> None:
    (row,) = checked([TWO], [SAMPLES], lambda pairs: np.array([0, np.nan, 1, 1]))
    assert row.suspicion.scores.tolist() == [0.25, 1]
    assert (row.asked, row.unanswered) == (4, 1)


# The four ways.


def test_a_sentence_is_as_unlike_a_sample_as_the_nearest_of_its_sentences() -> None:
    vectors = {"It is old.": [1, 0], "It is very old.": [0.8, 0.6], "Yes.": [0, 1], "It is new.": [0.6, -0.8]}

    def embedder(texts: Sequence[str]) -> np.ndarray:
        return np.array([vectors[text] for text in texts], np.float32)

    (row,) = checked([TWO], [SAMPLES], lambda pairs: unlike(pairs, embedder))
    # old: 1 - 1 and 1 - max(0.8, 0); new: 1 - 0.6 and 1 - max(0.48 - 0.48, -0.8).
    assert row.suspicion.scores == pytest.approx([0.1, 0.7])
    assert row.numbers == pytest.approx(0.4)


def test_who_is_asked_reads_a_sample_once_for_all_sentences() -> None:
    asked = []

    class Chat:
        def choose(self, messages: Sequence[str], answers: tuple[str, str]) -> list[float | None]:
            assert answers == ("Yes", "No")
            asked.append(list(messages))
            return [None if "new" in message else 0.9 if "very" in message else 0.4 for message in messages]

    (row,) = checked([TWO], [SAMPLES], lambda pairs: denied(pairs, Chat()))
    assert [len(messages) for messages in asked] == [2, 2]
    for messages, sample in zip(asked, SAMPLES.texts, strict=True):
        assert all(message.startswith(f"Text:\n{sample}\n") for message in messages)
    # Of the first sentence "Yes" is the likelier answer once; nobody answers about the second.
    assert row.suspicion.scores.tolist() == [0.5, 0.5]
    assert (row.asked, row.unanswered) == (4, 2)


def test_what_a_sample_supports_in_part_is_in_doubt_for_the_rest() -> None:
    def support(pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        return np.array([0.75 if "very" in sample else 0.5 for sample, _ in pairs])

    (row,) = checked([TWO], [SAMPLES], lambda pairs: not_entailed(pairs, support))
    assert row.suspicion.scores.tolist() == [0.375, 0.375]  # of 1/2 and 1/4
    assert row.numbers.tolist() == [0.375]


# As baselines.


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rows:
    """What the second sentence of every other response says is in no passage; the reader, when asked again,
    answers with the passages."""
    made = towns(42)
    monkeypatch.setattr(
        selfcheck, "samples_of", lambda examples, kit: [Samples(one.passages) for one in examples]
    )
    monkeypatch.setattr(selfcheck, "settings_of", lambda kit: {})
    return Rows(extraction(made, tmp_path / "s").store, tuple(made))


class Speaker:
    """Says yes where it knows the statement's first word from the text."""

    name = "speaker"

    def choose(self, messages: Sequence[str], answers: tuple[str, str]) -> list[float | None]:
        found: list[float | None] = []
        for message in messages:
            text, statement = message.split("Statement: ")
            found.append(0.8 if statement.split(maxsplit=1)[0] in text else 0.1)
        return found


@pytest.mark.parametrize(
    "baseline",
    [
        selfcheck.SELFCHECK_EMBEDDING,
        selfcheck.SELFCHECK_NGRAM,
        selfcheck.SELFCHECK_NLI,
        selfcheck.SELFCHECK_PROMPT,
    ],
    ids=["embedding", "n-gram", "nli", "prompt"],
)
def test_what_samples_do_not_say_is_flagged_and_marked(
    rows: Rows, baseline: Measured, tmp_path: Path
) -> None:
    assert baseline.facts.slow
    assert baseline.facts.access == "text and samples"
    kit = StandInKit(tmp_path / "kit", speaker=Speaker())
    scorer = baseline.fit(rows.select(range(30)), kit)
    own = rows.select(range(30, 42))
    scores = scorer.score(own, kit)
    assert [score.flagged for score in scores] == own.labels.tolist()
    for score, label in zip(scores, own.labels, strict=True):
        assert score.answered
        assert [part.marked for part in score.suspects] == [False, label]
    # Labels of what is judged are not looked at; what was kept is what was measured.
    hidden = Rows(rows.store, tuple(replace(one, labels=()) for one in own.examples))
    assert scorer.score(hidden, kit) == scores
    again = StandInKit(None, speaker=Speaker())
    assert [one.probability for one in scorer.score(own, again)] == pytest.approx(
        [one.probability for one in scores], rel=1e-5
    )


def test_entailment_learns_from_rows_that_are_fresh_to_its_model_only(rows: Rows) -> None:
    stale = rows.groups[[0, 1, 2, 3, 17]]
    kit = StandInKit(model=WordSupport("a"), stale=frozenset(stale))
    scorer = selfcheck.SELFCHECK_NLI.fit(rows, kit)
    assert scorer.outside.rows.tolist() == [*range(4, 17), *range(18, 42)]
    assert len(scorer.outside.probabilities) == 37
    judged = {sentence for _, sentence in kit.model.pairs}
    assert not any("alpha17" in sentence.lower() for sentence in judged)
    # It scores with the model of its fold, whatever the kit would give now.
    other = StandInKit(model=WordSupport("b"))
    scorer.score(rows.select([0]), other)
    assert other.model.pairs == []
    assert any("alpha0" in sentence.lower() for _, sentence in kit.model.pairs)


def test_a_response_without_samples_is_unanswered(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    def some(examples: Sequence, kit: StandInKit) -> list[Samples]:
        return [Samples(() if one.id in ("town-3", "town-40") else one.passages) for one in examples]

    monkeypatch.setattr(selfcheck, "samples_of", some)
    kit = StandInKit()
    for baseline in (selfcheck.SELFCHECK_EMBEDDING, selfcheck.SELFCHECK_NGRAM):
        scorer = baseline.fit(rows.select(range(30)), kit)
        found = scorer.score(rows.select([40, 41]), kit)
        assert [one.answered for one in found] == [False, True]
        assert found[0].probability == 0.5
        assert [len(one.suspects) for one in found] == [0, 2]
