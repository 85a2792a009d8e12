"""SelfCheckGPT on hand-made samples: numbers worked out from the definitions of its paper."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lrp4rag.errors import InputError
from lrp4rag.example import Label
from lrp4rag.experiments.systems import selfcheck
from lrp4rag.experiments.systems.ngrams import NGrams
from lrp4rag.experiments.systems.resources import Resources
from lrp4rag.experiments.systems.selfcheck import (
    Samples,
    checked,
    denied,
    not_entailed,
    samples_of,
    surprising,
    unlike,
)
from lrp4rag.reader import Reader
from lrp4rag.reader.prompted import Prompted
from lrp4rag.training.rows import Rows
from tests.experiments.systems.stand_ins import stand_in, towns
from tests.tiny import bridge_example
from tests.training.labelled import extraction

TWO = bridge_example(response="It is old. It is new.")
SAMPLES = Samples(("It is old.", "It is very old. Yes."))


def test_ngrams_count_what_comes_before_a_word() -> None:
    sentences = [["a", "b", "a"], ["a", "c"]]
    single = NGrams.of(sentences, 1)
    assert single.counts(["a", "b"]) == [(3, 5), (1, 5)]
    double = NGrams.of(sentences, 2)
    # "a" comes first in both sentences; it is followed by b and by c.
    assert double.counts(["a", "b", "a"]) == [(2, 2), (1, 2), (1, 1)]
    assert double.counts([]) == []


def test_surprise_by_ngrams_of_samples_and_response() -> None:
    row = surprising(TWO, SAMPLES)
    # it 4, is 4, old 3, very 1, yes 1, new 1: 14 words. After "is": old 2, very 1, new 1.
    it, old, new = log(14 / 4), log(14 / 3), log(14)
    bigrams = [(log(5 / 4), 0, log(4 / 2)), (log(5 / 4), 0, log(4))]  # five sentences, four begin with "it"
    expected = [
        ((it + it + old) / 3 + (it + it + new) / 3) / 2,
        (old + new) / 2,
        np.mean(bigrams),
        (log(2) + log(4)) / 2,
    ]
    assert row.numbers == pytest.approx(expected)
    assert row.suspicion.scores == pytest.approx([old, new])
    assert row.suspicion.spans.tolist() == [[0, 10], [11, 21]]


def test_a_response_that_no_sample_resembles_has_finite_surprise_and_one_without_words_none() -> None:
    assert np.isfinite(surprising(TWO, Samples(("Something else.",))).numbers).all()
    row = surprising(bridge_example(response="..."), SAMPLES)
    assert row.numbers.tolist() == [0, 0, 0, 0]
    assert np.isnan(surprising(TWO, Samples(())).numbers).tolist() == [True] * 4


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
        selfcheck, "samples_of", lambda examples, resources: [Samples(one.passages) for one in examples]
    )
    monkeypatch.setattr(selfcheck, "sample_settings", lambda resources: {})
    return Rows(extraction(made, tmp_path / "s").store, tuple(made))


def test_a_response_without_samples_is_unanswered(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    def some(examples: Sequence, resources: object) -> list[Samples]:
        return [Samples(() if one.id in ("town-3", "town-40") else one.passages) for one in examples]

    monkeypatch.setattr(selfcheck, "samples_of", some)
    resources = stand_in()
    for baseline in (selfcheck.SELFCHECK_EMBEDDING, selfcheck.SELFCHECK_NGRAM):
        scorer = baseline.fit(rows.select(range(30)), resources)
        found = scorer.score(rows.select([40, 41]), resources)
        assert [one.answered for one in found] == [False, True]
        assert found[0].probability == 0.5
        assert [len(one.suspects) for one in found] == [0, 2]


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selfcheck, "MAX_NEW_TOKENS", 6)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of the prompts that were read."""
    lengths = []

    def watched(self: Prompted, reader: Reader, ids: list[int], init: Any = Prompted.__init__) -> None:
        lengths.append(len(ids))
        init(self, reader, ids)

    monkeypatch.setattr(Prompted, "__init__", watched)
    return lengths


def kit_of(reader: Reader, folder: Path | None = None, seed: int = 0) -> Resources:
    resources = Resources(folder, seed=seed)
    resources.once("reader", lambda: reader)
    return resources


def test_responses_to_a_prompt_share_their_samples(
    tiny_reader: Reader, tmp_path: Path, read: list[int]
) -> None:
    rows = [
        bridge_example(1),
        bridge_example(1, response="Nobody knows.", labels=(Label(0, 6),)),
        bridge_example(2),
    ]
    first, again, other = samples_of(rows, kit_of(tiny_reader, tmp_path))
    assert first == again
    assert not set(first.texts) & set(other.texts)
    assert len(set(first.texts)) == selfcheck.COUNT
    prompts = [tiny_reader.encode_prompt(rows[k], max_new_tokens=6).prompt_ids for k in (0, 2)]
    assert read == [len(ids) for ids in prompts]
    # Another process reads them.
    assert samples_of(rows, kit_of(tiny_reader, tmp_path)) == [first, again, other]
    assert len(read) == 2


def test_samples_are_those_of_the_prompt_and_the_seed(tiny_reader: Reader) -> None:
    rows = [bridge_example(1), bridge_example(2)]
    one = samples_of(rows, kit_of(tiny_reader))
    assert samples_of(rows[::-1], kit_of(tiny_reader)) == one[::-1]
    assert samples_of(rows, kit_of(tiny_reader, seed=1)) != one


def test_other_settings_are_drawn_anew(
    tiny_reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first,) = samples_of([bridge_example()], kit_of(tiny_reader, tmp_path))
    monkeypatch.setattr(selfcheck, "COUNT", 2)
    (fewer,) = samples_of([bridge_example()], kit_of(tiny_reader, tmp_path))
    assert (len(first.texts), len(fewer.texts)) == (5, 2)


def test_empty_samples_are_dropped(tiny_reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Prompted, "sample", lambda *_, **__: ["", "It was.", "", "Was it?", ""])
    assert samples_of([bridge_example()], kit_of(tiny_reader)) == [Samples(("It was.", "Was it?"))]
    monkeypatch.setattr(Prompted, "sample", lambda *_, **__: [""] * 5)
    assert samples_of([bridge_example()], kit_of(tiny_reader)) == [Samples(())]


def test_a_prompt_that_leaves_no_room_is_refused(tiny_reader: Reader) -> None:
    long = bridge_example(passages=["The old stone bridge. " * 200])
    with pytest.raises(InputError, match="fills the reader's window of 512"):
        samples_of([long], kit_of(tiny_reader))
