"""SelfCheckGPT on hand-made samples: numbers worked out from the definitions of its paper."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from experiments.cache import Cache
from experiments.systems import selfcheck
from experiments.systems.prompted import Prompted
from experiments.systems.resources import Resources
from experiments.systems.selfcheck import (
    NGrams,
    checked,
    denied,
    samples_of,
    surprising,
    unlike,
)
from lrp4rag.example import Label
from lrp4rag.util.errors import InputError
from tests.experiments.systems.stand_ins import ScriptedChat, judged, rows_of, stand_in, towns
from tests.tiny import bridge_example

TWO = bridge_example(response="It is old. It is new.")
SAMPLES = ("It is old.", "It is very old. Yes.")


def test_ngrams_count_what_comes_before_a_word():
    sentences = [["a", "b", "a"], ["a", "c"]]
    assert NGrams.of(sentences, 1).counts(["a", "b"]) == [(3, 5), (1, 5)]
    double = NGrams.of(sentences, 2)
    # "a" comes first in both sentences; it is followed by b and by c.
    assert double.counts(["a", "b", "a"]) == [(2, 2), (1, 2), (1, 1)]
    assert double.counts([]) == []


def test_surprise_by_ngrams_of_samples_and_response():
    row = surprising(TWO, SAMPLES)
    # it 4, is 4, old 3, very 1, yes 1, new 1: 14 words. After "is": old 2, very 1, new 1.
    it, old, new = log(14 / 4), log(14 / 3), log(14)
    bigrams = [(log(5 / 4), 0, log(4 / 2)), (log(5 / 4), 0, log(4))]  # five sentences, four begin with "it"
    unigrams = ((it + it + old) / 3 + (it + it + new) / 3) / 2
    expected = [unigrams, (old + new) / 2, np.mean(bigrams), (log(2) + log(4)) / 2]
    assert row.numbers == pytest.approx(expected)
    assert row.suspicion.scores == pytest.approx([old, new])
    assert row.suspicion.spans.tolist() == [[0, 10], [11, 21]]


def test_a_response_that_no_sample_resembles_has_finite_surprise_and_one_without_words_none():
    assert np.isfinite(surprising(TWO, ("Something else.",)).numbers).all()
    assert surprising(bridge_example(response="..."), SAMPLES).numbers.tolist() == [0, 0, 0, 0]
    assert np.isnan(surprising(TWO, ()).numbers).tolist() == [True] * 4


def test_doubts_are_averaged_over_samples_and_then_over_sentences():
    table = {
        ("It is old.", "It is old."): 0.0,
        ("It is very old. Yes.", "It is old."): 0.5,
        ("It is old.", "It is new."): 0.75,
        ("It is very old. Yes.", "It is new."): 1.0,
        ("Maybe.", "No."): 0.125,
    }
    calls = []

    def doubt(pairs):
        calls.append(pairs)
        return np.array([table[pair] for pair in pairs])

    one = bridge_example(response="No.")
    first, other = checked([TWO, one], [SAMPLES, ("Maybe.",)], doubt)
    assert first.suspicion.spans.tolist() == [[0, 10], [11, 21]]
    assert first.suspicion.scores.tolist() == [0.25, 0.875]
    assert first.numbers.tolist() == [0.5625]
    assert other.numbers.tolist() == other.suspicion.scores.tolist() == [0.125]
    assert [(row.asked, row.unanswered) for row in (first, other)] == [(4, 0), (1, 0)]
    assert calls == [list(table)]  # all at once


def test_without_samples_or_any_answer_there_is_no_number():
    silent, drawn = checked([TWO, TWO], [(), SAMPLES], lambda pairs: np.full(len(pairs), np.nan))
    for row, asked in ((silent, 0), (drawn, 4)):
        assert np.isnan(row.numbers).tolist() == [True]
        assert (row.suspicion, row.asked, row.unanswered) == (None, asked, asked)


def test_an_answer_that_is_missing_counts_half():
    (row,) = checked([TWO], [SAMPLES], lambda pairs: np.array([0, np.nan, 1, 1]))
    assert row.suspicion.scores.tolist() == [0.25, 1]
    assert (row.asked, row.unanswered) == (4, 1)


def test_a_sentence_is_as_unlike_a_sample_as_the_nearest_of_its_sentences():
    vectors = {"It is old.": [1, 0], "It is very old.": [0.8, 0.6], "Yes.": [0, 1], "It is new.": [0.6, -0.8]}
    embedder = lambda texts: np.array([vectors[text] for text in texts], np.float32)  # noqa: E731
    (row,) = checked([TWO], [SAMPLES], lambda pairs: unlike(pairs, embedder))
    # old: 1 - 1 and 1 - max(0.8, 0); new: 1 - 0.6 and 1 - max(0.48 - 0.48, -0.8).
    assert row.suspicion.scores == pytest.approx([0.1, 0.7])
    assert row.numbers == pytest.approx(0.4)


def test_who_is_asked_reads_a_sample_once_for_all_sentences():
    chat = ScriptedChat(chosen=lambda one: None if "new" in one else 0.9 if "very" in one else 0.4)
    (row,) = checked([TWO], [SAMPLES], lambda pairs: denied(pairs, chat))
    assert set(chat.answers) == {("Yes", "No")}
    assert [len(messages) for messages in chat.asked] == [2, 2]
    for messages, sample in zip(chat.asked, SAMPLES, strict=True):
        assert all(message.startswith(f"Text:\n{sample}\n") for message in messages)
    # Of the first sentence "Yes" is the likelier answer once; nobody answers about the second.
    assert row.suspicion.scores.tolist() == [0.5, 0.5]
    assert (row.asked, row.unanswered) == (4, 2)


@pytest.mark.parametrize("baseline", [selfcheck.SELFCHECK_EMBEDDING, selfcheck.SELFCHECK_NGRAM])
def test_a_response_without_samples_is_unanswered(baseline, monkeypatch):
    def samples(examples, _):
        return [() if one.id in ("town-3", "town-40") else one.passages for one in examples]

    monkeypatch.setattr(selfcheck, "samples_of", samples)
    monkeypatch.setattr(selfcheck, "sample_settings", lambda _: {})
    rows, resources = rows_of(towns(42)), stand_in()
    silent, known = judged(baseline.fit(rows.select(range(30)), resources), rows.select([40, 41]), resources)
    assert (silent.answered, silent.probability, silent.parts) == (False, 0.5, [])
    assert (known.answered, len(known.parts)) == (True, 2)


@pytest.fixture
def drawn(monkeypatch, tiny_reader, tmp_path):
    """Draws short samples of some examples, into this folder."""
    monkeypatch.setattr(selfcheck, "MAX_NEW_TOKENS", 6)

    def draw(*examples, folder=tmp_path, seed=0):
        resources = Resources(Cache(folder), seed=seed)
        resources.once("reader", lambda: tiny_reader)
        return samples_of(examples, resources)

    return draw


def test_responses_to_a_prompt_share_their_samples(tiny_reader, drawn, monkeypatch):
    read = []  # the lengths of the prompts that were read

    def watched(self, reader, ids, init=Prompted.__init__):
        read.append(len(ids))
        init(self, reader, ids)

    monkeypatch.setattr(Prompted, "__init__", watched)
    again = bridge_example(1, response="Nobody knows.", labels=(Label(0, 6),))
    rows = [bridge_example(1), again, bridge_example(2)]
    first, second, other = drawn(*rows)
    assert first == second
    assert not set(first) & set(other)
    assert len(set(first)) == selfcheck.COUNT
    prompts = [tiny_reader.encode_prompt(rows[k], max_new_tokens=6).prompt_ids for k in (0, 2)]
    assert read == [len(ids) for ids in prompts]
    # Another process reads them.
    assert drawn(*rows) == [first, second, other]
    assert len(read) == 2


def test_samples_are_those_of_the_prompt_the_seed_and_the_settings(drawn, monkeypatch):
    rows = [bridge_example(1), bridge_example(2)]
    one = drawn(*rows)
    assert drawn(*rows[::-1], folder=None) == one[::-1]
    assert drawn(*rows, folder=None, seed=1) != one
    monkeypatch.setattr(selfcheck, "COUNT", 2)
    assert [len(few) for few in drawn(*rows)] == [2, 2]


def test_empty_samples_are_dropped(drawn, monkeypatch):
    for said, expected in ((["", "It was.", "", "Was it?", ""], ("It was.", "Was it?")), ([""] * 5, ())):
        monkeypatch.setattr(Prompted, "sample", lambda *_, said=said, **__: said)
        assert drawn(bridge_example(), folder=None) == [expected]


def test_a_prompt_that_leaves_no_room_is_refused(drawn):
    with pytest.raises(InputError, match="fills the reader's window of 512"):
        drawn(bridge_example(passages=["The old stone bridge. " * 200]))
