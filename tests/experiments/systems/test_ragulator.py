"""RAGulator on cases worked out by hand; no weights are needed."""

import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from lrp4rag.errors import InputError
from lrp4rag.experiments.systems.ragulator import encoder, features, labelling, trees
from lrp4rag.experiments.systems.ragulator.ngrams import NGrams, stems
from lrp4rag.experiments.systems.ragulator.sentences import (
    RAGULATOR_ANNOTATED,
    RAGULATOR_FOREST,
    RAGULATOR_LIGHTGBM,
    RAGULATOR_PROMPTED,
    response_scores,
)
from lrp4rag.experiments.systems.suspicion import Suspicion
from lrp4rag.sentences import sentences_of
from lrp4rag.training.rows import Rows
from tests.experiments.systems.entailed_kit import StandInKit, WordSupport, towns
from tests.tiny import bridge_example

CONTEXT = NGrams.of(map(stems, ["The red bridge was opened.", "The bridge is old."]))


def test_words_are_stemmed_and_stop_words_left_out():
    assert stems("The Red BRIDGES were opened, and it was old.") == ["red", "bridg", "open", "old"]


def test_precision_is_the_share_of_words_that_the_context_has():
    assert CONTEXT.precision(stems("The old bridge burned quickly.")) == 2 / 4
    assert CONTEXT.precision(stems("It was.")) == 1


def test_unigram_perplexity_is_that_of_the_smoothed_context():
    # 5 words, 4 distinct: p(bridg) = (2 + 1) / (5 + 5), p(burn) = (0 + 1) / 10.
    assert CONTEXT.unigram_perplexity(stems("bridge burned")) == pytest.approx((0.3 * 0.1) ** -0.5)
    assert sum(
        1 / CONTEXT.unigram_perplexity([word]) for word in [*CONTEXT.words, "unknown"]
    ) == pytest.approx(1)


def test_bigram_perplexity_is_that_of_the_smoothed_pairs_within_sentences():
    # Of two sentences one begins with bridg, 4 words are distinct: (1 + 1) / (2 + 5). Of two pairs that begin
    # with bridg, none ends with burn: (0 + 1) / (2 + 5).
    expected = ((1 + 1) / (2 + 5) * (0 + 1) / (2 + 5)) ** -0.5
    assert CONTEXT.bigram_perplexity(stems("bridge burned")) == pytest.approx(expected)
    # No pair runs over the end of a sentence.
    assert CONTEXT.pairs["open", "bridg"] == 0
    assert CONTEXT.firsts["open"] == 0
    assert CONTEXT.bigram_perplexity([]) == 1


def test_five_features_of_each_sentence():
    (town,) = towns(1, first=1)
    kit = StandInKit()
    (found,) = features.features_of([town], kit.model, kit)
    assert [town.response[start:end] for start, end in found.spans] == [
        "Alpha1 beta1 gamma1.",
        "Dragon1 burned1 castles1.",
    ]
    told, dragon = found.numbers
    assert len(features.FEATURES) == len(told) == 5
    # Nine words in the context, each once: p = 2/19 and 1/19; every pair of the first sentence occurs once,
    # and three sentences begin: p = 2/13, 2/11, 2/11.
    assert told == pytest.approx([1, 19 / 2, (13 * 11 * 11 / 8) ** (1 / 3), 1, 1], rel=1e-5)
    assert dragon[:2] == pytest.approx([0, 19])
    assert dragon[4] == 0


def test_only_the_chunks_most_like_a_sentence_are_reranked_and_the_best_counts():
    passages = ["Grey cats sleep.", "Black cats run far away.", "Black dogs run.", "Rain falls."]
    made = [
        bridge_example(0, passages=passages, response=text)
        for text in ("Black cats run.", "Rain falls. Cats sleep.")
    ]
    kit = StandInKit()
    found = features.features_of(made, kit.model, kit)
    assert kit.model.calls == [3 * features.RERANKED]  # one call for all responses of the source
    assert len(kit.vectors.calls) == 1
    assert {premise for premise, text in kit.model.pairs if text == "Black cats run."} == {
        "Black cats run far away.",
        "Black dogs run.",
    }
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
    numbers = np.repeat(np.arange(12.0), 2)
    inputs = np.column_stack([numbers, np.linspace(0, 1, 24)])
    lessons = labelling.Lessons(
        inputs, np.tile([False, True], 12), numbers.astype(str), np.arange(12.0).astype(str)
    )
    found = trees.outside_scores(KnowsItsGroups(), lessons, np.split(inputs, 12), 0)
    assert np.concatenate(found) == pytest.approx(inputs[:, 1])
    assert {len(one) for one in found} == {2}


def test_a_response_is_as_suspect_as_its_most_suspect_sentence():
    one = Suspicion(np.zeros((3, 2), int), np.array([0.2, 0.9, 0.4]))
    assert response_scores([one, Suspicion(one.spans, -one.scores)]).tolist() == [0.9, -0.2]


def test_the_encoder_takes_the_smallest_probability_over_windows():
    assert encoder.out_of_context(np.array([[0.2, 0.9], [0.4, 0.1]])) == pytest.approx([0.1, 0.6])


def test_windows_run_over_passages_and_are_short():
    sentence = "word " * 49 + "end."
    example = bridge_example(0, passages=[" ".join([sentence] * 3), " ".join([sentence] * 4)])
    lengths = [len(window.split()) for window in encoder.windows_of(example)]
    assert lengths == [200, 150]
    assert max(lengths) <= encoder.WINDOW_WORDS


def test_the_encoder_measures_the_highest_of_the_sentences():
    made = towns(2)
    made[1] = replace(made[0], response="Alpha0 beta0 unknown unheard. Theta0 iota0 kappa0 unheard.")
    model = WordSupport()
    first, second = encoder.measure(made, model)
    assert first.numbers.tolist() == [0]
    assert second.suspicion.scores == pytest.approx([1 / 2, 1 / 4])
    assert second.numbers == pytest.approx([1 / 2])
    assert model.calls == [4]  # all fits one window
    assert second.suspicion.spans[1].tolist() == [30, 58]


@pytest.mark.parametrize(
    "baseline", [RAGULATOR_FOREST, RAGULATOR_LIGHTGBM, RAGULATOR_ANNOTATED, encoder.RAGULATOR_ENCODER]
)
def test_fitted_on_fresh_rows_it_finds_what_no_passage_says(baseline, monkeypatch):
    monkeypatch.setattr(trees, "FOREST_TREES", (20,))
    monkeypatch.setattr(trees, "BOOSTING", ((20, 0.1),))
    given, judged = towns(40), towns(6, first=100)
    stale = [one.source for one in given[:8]]
    kit = StandInKit(stale=frozenset(stale))
    scorer = baseline.fit(Rows(None, tuple(given)), kit)
    assert not {text for _, text in kit.model.pairs} & {
        text for one in given[:8] for text in sentences_of(one.response)
    }
    assert scorer.outside.rows.tolist() == list(range(8, 40))
    assert len(scorer.outside.probabilities) == 32
    # The model that it was fitted with is the one that it judges with, whatever the kit has now.
    other = StandInKit(model=WordSupport("other"))
    found = scorer.score(Rows(None, tuple(judged)), other)
    assert not other.model.calls
    assert [one.flagged for one in found] == [False, True] * 3
    assert [[part.marked for part in one.suspects] for one in found[:2]] == [[False, False], [False, True]]
    assert [(part.start, part.end) for part in found[0].suspects] == [(0, 26), (27, 55)]
    assert all(one.answered for one in found)
    turned = [replace(one, labels=() if one.labels else (judged[1].labels)) for one in judged]
    assert scorer.score(Rows(None, tuple(turned)), kit) == found


@dataclass
class Labeller:
    """Says that no sentence supports one about dragons; `useless` says nothing that can be read."""

    useless: bool = False
    name: str = "labeller"

    def replies(self, messages, **_):
        if self.useless:
            return ["As I said, some of them."] * len(messages)
        return ["none" if "Statement: Dragon" in message else "1" for message in messages]


def test_a_models_labels_are_learned_from(monkeypatch):
    monkeypatch.setattr(trees, "FOREST_TREES", (20,))
    monkeypatch.setattr(trees, "BOOSTING", ((20, 0.1),))
    kit = StandInKit(speaker=Labeller())
    scorer = RAGULATOR_PROMPTED.fit(Rows(None, tuple(towns(40))), kit)
    assert scorer.chosen.endswith(", 80 sentences labelled")
    found = scorer.score(Rows(None, tuple(towns(6, first=100))), kit)
    assert [one.flagged for one in found] == [False, True] * 3
    assert [part.marked for part in found[1].suspects] == [False, True]


def test_of_a_model_that_labels_nothing_nothing_is_learned():
    kit = StandInKit(speaker=Labeller(useless=True))
    scorer = RAGULATOR_PROMPTED.fit(Rows(None, tuple(towns(40))), kit)
    assert scorer.chosen.startswith("nothing")
    for one in scorer.score(Rows(None, tuple(towns(6, first=100))), kit):
        assert not one.answered
        assert one.suspects is None
        assert one.probability == 0.5  # how often those learned from are hallucinated


def test_without_the_library_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(InputError, match=r"pip install 'lrp4rag\[baselines\]'"):
        RAGULATOR_LIGHTGBM.fit(Rows(None, tuple(towns(12))), StandInKit())


def test_too_few_couples_are_told():
    with pytest.raises(
        InputError, match=r"^8 sources are fresh .* takes two: 5 folds .* there are 4; extract"
    ):
        RAGULATOR_FOREST.fit(Rows(None, tuple(towns(8))), StandInKit())
    for baseline in (RAGULATOR_ANNOTATED, RAGULATOR_PROMPTED):  # which pair nothing
        with pytest.raises(InputError, match=r"^4 sources are fresh to the cross-encoder: 5 folds .* ext"):
            baseline.fit(Rows(None, tuple(towns(4))), StandInKit(speaker=Labeller()))
