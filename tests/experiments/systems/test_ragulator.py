"""RAGulator on cases worked out by hand; no weights are needed."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from experiments.systems import ragulator
from experiments.systems.judge import RETRY_TEMPERATURE
from experiments.systems.ragulator import (
    RAGULATOR_ANNOTATED,
    RAGULATOR_FOREST,
    RAGULATOR_LIGHTGBM,
    RAGULATOR_PROMPTED,
    SENTENCES,
    Context,
    ask,
    couples,
    read_indices,
    simulated,
    stems,
)
from lrp4rag.util.errors import InputError
from lrp4rag.util.sentences import sentences_of
from tests.experiments.systems.stand_ins import ScriptedChat, judged, no_training, rows_of, stand_in, towns
from tests.tiny import bridge_example

CONTEXT = Context.of(["The red bridge was opened.", "The bridge is old."])


@pytest.fixture(autouse=True)
def models(monkeypatch):
    no_training(monkeypatch)


def features_of(examples, resources):
    return ragulator.features_of(examples, resources.model, resources)


def test_words_are_stemmed_and_stop_words_left_out():
    assert stems("The Red BRIDGES were opened, and it was old.") == ["red", "bridg", "open", "old"]


def test_precision_is_the_share_of_words_that_the_context_has():
    assert CONTEXT.precision(stems("The old bridge burned quickly.")) == 2 / 4
    assert CONTEXT.precision(stems("It was.")) == 1


def test_unigram_perplexity_is_that_of_the_smoothed_context():
    # 5 words, 4 distinct: p(bridg) = (2 + 1) / (5 + 5), p(burn) = (0 + 1) / 10.
    assert CONTEXT.unigram_perplexity(stems("bridge burned")) == pytest.approx((0.3 * 0.1) ** -0.5)
    words = ["red", "bridg", "open", "old", "unknown"]
    assert sum(1 / CONTEXT.unigram_perplexity([word]) for word in words) == pytest.approx(1)


def test_bigram_perplexity_is_that_of_the_smoothed_pairs_within_sentences():
    # Of two sentences one begins with bridg, 4 words are distinct: (1 + 1) / (2 + 5). Of two pairs that begin
    # with bridg, none ends with burn: (0 + 1) / (2 + 5).
    expected = ((1 + 1) / (2 + 5) * (0 + 1) / (2 + 5)) ** -0.5
    assert CONTEXT.bigram_perplexity(stems("bridge burned")) == pytest.approx(expected)
    # No pair runs over the end of a sentence.
    assert CONTEXT.pairs.runs["open", "bridg"] == CONTEXT.pairs.beginnings["open",] == 0
    assert CONTEXT.bigram_perplexity([]) == 1


def test_five_features_of_each_sentence():
    (town,) = towns(1, first=1)
    (found,) = features_of([town], stand_in())
    assert [town.response[start:end] for start, end in found.spans] == sentences_of(town.response)
    first, dragon = found.numbers
    assert len(ragulator.FEATURES) == len(first) == 5
    # Nine words in the context, each once: p = 2/19 and 1/19; every pair of the first sentence occurs once,
    # and three sentences begin: p = 2/13, 2/11, 2/11.
    assert first == pytest.approx([1, 19 / 2, (13 * 11 * 11 / 8) ** (1 / 3), 1, 1], rel=1e-5)
    assert dragon[:2] == pytest.approx([0, 19])
    assert dragon[4] == 0


def test_only_the_chunks_most_like_a_sentence_are_reranked_and_the_best_counts():
    passages = ["Grey cats sleep.", "Black cats run far away.", "Black dogs run.", "Rain falls."]
    said = ("Black cats run.", "Rain falls. Cats sleep.")
    resources = stand_in()
    found = features_of([bridge_example(0, passages=passages, response=text) for text in said], resources)
    assert resources.model.calls == [3 * ragulator.RERANKED]  # one call for all responses of the source
    assert len(resources.vectors.calls) == 1
    assert {premise for premise, text in resources.model.pairs if text == said[0]} == set(passages[1:3])
    assert [list(one.numbers[:, 4]) for one in found] == [[1.0], [1.0, 1.0]]


class KnowsItsGroups(ClassifierMixin, BaseEstimator):
    """The first column is the number of the group."""

    def fit(self, inputs, labels):
        self.classes_, self.groups_ = np.array([False, True]), set(inputs[:, 0])
        return self

    def predict_proba(self, inputs):
        assert not self.groups_ & set(inputs[:, 0])
        return np.column_stack([1 - inputs[:, 1], inputs[:, 1]])


def test_no_sentence_is_scored_by_a_model_that_learned_from_its_group():
    numbers = np.arange(12.0)
    inputs = np.column_stack([np.repeat(numbers, 2), np.linspace(0, 1, 24)])
    flags, groups = np.tile([False, True], 12), np.repeat(numbers, 2).astype(str)
    found = ragulator.LabelledSentences(inputs, flags, groups, numbers.astype(str))
    scores = ragulator.outside_scores(KnowsItsGroups(), found, np.split(inputs, 12), 0)
    assert np.array(scores) == pytest.approx(inputs[:, 1].reshape(12, 2))


def test_of_a_model_that_labels_nothing_nothing_is_learned():
    resources = stand_in(speaker=ScriptedChat(lambda *_: "As I said, some of them."))
    scorer = RAGULATOR_PROMPTED.fit(rows_of(towns(40)), resources)
    assert scorer.chosen.startswith("nothing")
    for one in judged(scorer, rows_of(towns(6, first=100)), resources):
        assert (one.answered, one.parts) == (False, None)
        assert one.probability == 0.5  # how often those learned from are hallucinated


def test_without_the_library_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(InputError, match=r"pip install 'lrp4rag\[baselines\]'"):
        RAGULATOR_LIGHTGBM.fit(rows_of(towns(12)), stand_in())


@pytest.mark.parametrize(
    ("baseline", "count", "words"),
    [
        (RAGULATOR_FOREST, 8, r"^8 sources are fresh .* takes two: 5 folds .* there are 4; extract"),
        (RAGULATOR_ANNOTATED, 4, r"^4 sources are fresh to the cross-encoder: 5 folds .* ext"),
        (RAGULATOR_PROMPTED, 4, r"^4 sources are fresh to the cross-encoder: 5 folds .* ext"),
    ],
)
def test_too_few_sources_are_counted(baseline, count, words):
    with pytest.raises(InputError, match=words):
        baseline.fit(rows_of(towns(count)), stand_in(speaker=ScriptedChat(lambda *_: "1")))


def test_couples_have_every_source_once():
    names = [f"s{k}" for k in range(7)]
    made = couples(names, 0)
    assert sorted(map(len, made)) == [2, 2, 3]
    assert sorted(name for couple in made for name in couple) == names
    assert couples(reversed(names), 0) == made != couples(names, 1)
    with pytest.raises(InputError, match="another source"):
        couples(["s"], 0)


@pytest.mark.parametrize("count", [2, 5, 8])
def test_sentences_go_to_other_sources_of_those_given_only(count):
    given = towns(count)
    passages = {one.passages: one.source for one in given}
    for one, example in zip(simulated(given, 0), given, strict=True):
        assert passages[one.elsewhere.passages] == one.elsewhere.source != example.source
        assert {one.elsewhere.source, example.source} <= set(one.couple.split(" and "))
        assert set(sentences_of(one.elsewhere.response)) <= set(sentences_of(example.response))
        assert one.elsewhere.labels is None
        assert len(one.own) == min(SENTENCES, 2)


def test_lines_of_code_keep_their_places():
    """What is one line of code and two sentences by itself is not drawn: it would count as its number."""
    said = "Water it daily.\n```\nKeep it moist. Give it light.\n```\nIt likes warm rooms."
    given = [town.with_response(said) for town in towns(4)]
    split = [text for text in sentences_of(said) if sentences_of(text) != [text]]
    assert split
    for one in simulated(given, 0):
        own = [sentences_of(said)[k] for k in one.own]
        assert sentences_of(one.elsewhere.response) == own
        assert not set(split) & set(own)


def test_simulated_labels_look_at_no_annotation():
    given, resources = towns(6), stand_in()
    own = features_of(given, resources)
    found = ragulator.from_simulated(given, own, resources.model, resources)
    assert found.labels.tolist() == [False] * 12 + [True] * 12
    assert (found.inputs[:12] == np.concatenate([one.numbers for one in own])).all()
    assert (found.inputs[12:, 0] == 0).all()  # sources share no word
    for group in set(found.groups):
        assert found.labels[found.groups == group].mean() == 0.5
        assert (found.group_of == group).sum() == 2
    without = [replace(one, labels=()) for one in given]
    again = ragulator.from_simulated(without, own, resources.model, resources)
    assert (again.labels == found.labels).all()


def test_annotated_labels_are_the_sentences_that_a_span_touches():
    given, resources = towns(2), stand_in()
    found = ragulator.from_spans(given, features_of(given, resources), resources.model, resources)
    assert found.labels.tolist() == [False, False, False, True]
    assert found.groups.tolist() == [given[0].source] * 2 + [given[1].source] * 2


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("2", (2,)),
        (" 1, 3,2. ", (1, 3, 2)),
        ("None.", ()),
        ("none", ()),
        *((reply, None) for reply in ("0", "4", "1, 9", "", "sentence 2", "2 and 3", "none, 2", "-1")),
    ],
)
def test_only_numbers_in_range_or_none_are_read(reply, expected):
    assert read_indices(reply, 3) == expected


def answering(said, unsure=()):
    """Replies by the statement asked about, and to those in `unsure` uselessly at first."""

    def reply(message, time):
        statement = message.partition("Statement: ")[2].partition("\n")[0]
        return "who knows" if statement in unsure and time == 0 else said[statement]

    return ScriptedChat(reply)


def test_replies_become_labels_and_unusable_ones_become_none():
    town = towns(1)[0].with_response("Alpha is. Beta is. Gamma is. Delta is.")
    said = {"Alpha is.": "1", "Beta is.": "none", "Gamma is.": "2, 3", "Delta is.": "7"}
    chat = answering(said, unsure=("Gamma is.",))
    (asked,) = ask([town], chat)  # the context has three sentences
    assert asked == pytest.approx([0, 1, 0, np.nan], nan_ok=True)
    assert [len(messages) for messages in chat.asked] == [4, 2]
    assert [temperature for _, temperature, _ in chat.options] == [0.0, RETRY_TEMPERATURE]


def test_sentences_without_a_usable_reply_are_left_out():
    given = towns(2)
    texts = [text for one in given for text in sentences_of(one.response)]
    said = dict(zip(texts, ["1", "what?", "2", "none"], strict=True))
    resources = stand_in(speaker=answering(said))
    known = features_of(given, resources)
    found = ragulator.from_replies(given, known, resources.model, resources)
    assert found.labels.tolist() == [False, False, True]
    assert (found.inputs == np.concatenate([one.numbers for one in known])[[0, 2, 3]]).all()
    assert found.group_of.tolist() == [one.source for one in given]
