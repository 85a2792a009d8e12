"""What holds of every baseline: it finds planted hallucinations, draws nothing at random, looks at no label
of what it judges, and calibrates on rows that its models have not seen."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from experiments.systems import ragulator, redeep, selfcheck
from experiments.systems.registry import BASELINES
from experiments.systems.scoring import PartScores
from lrp4rag.training.rows import Rows
from lrp4rag.util.errors import InputError
from tests.experiments.systems.stand_ins import (
    ScriptedChat,
    judged,
    no_training,
    redeep_scores,
    stand_in,
    towns,
    unlabelled,
)
from tests.training.labelled import extraction

LEARN, SEEN, LAYERS = 40, 8, 8
TRAINED = {name for name, one in BASELINES.items() if "in the folds" in one.facts.weights} | {"selfcheck-nli"}
PARTS = {
    "lookback-lens-windows",
    "lettucedetect",
    "entailment",
    "grounded-in-context",
    *(name for name in BASELINES if name.startswith(("ragulator", "selfcheck", "redeep"))),
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Hallucinated responses are longer too, and every signal of the reader tells them."""
    made = [
        replace(one, response=f"{one.response} It was so, and it is so.") if one.labels else one
        for one in towns(LEARN + 8)
    ]
    store = extraction(made, tmp_path_factory.mktemp("systems") / "s").store
    draw = np.random.default_rng(0)
    for example in made:
        length, flag = len(example.response.split(" ")), bool(example.labels)
        states = draw.normal(size=(2, LAYERS + 1, 5))
        states[:, LAYERS] += 4 * flag
        lookback = draw.uniform(0.48, 0.52, (2, 3, length))
        if flag:
            lookback[1, 2, 3:] = 0.05
        arrays = {
            "by_segment": np.zeros((4, length)),
            "logprob": -draw.random(length) - flag,
            "logprob_without_passages": -draw.random(length),
            "entropy": draw.random(length),
            "lookback": lookback,
            "hidden_mean": states[0],
            "hidden_last": states[1],
        }
        store.write_arrays(example, "signals", {name: a.astype(np.float16) for name, a in arrays.items()})
    return Rows(store, tuple(made))


def said(message, _):
    """Of any prompt's reply: that something is not supported where a dragon is mentioned."""
    if "Numbered sentences" in message:
        return "none" if "Statement: Dragon" in message else "1"
    flag = "Dragon" in message
    return f"{'FAIL' if flag else 'PASS'}: it is so.\nVerdict: {'Yes' if flag else 'No'}"


def chosen(message):
    """Of "Yes" where a sample is asked about, of "No" where a response is."""
    if "Text:\n" in message:
        text, statement = message.split("Statement: ")
        return 0.8 if statement.split(maxsplit=1)[0] in text else 0.1
    return 0.9 if "Dragon" in message else 0.2


def token_scores(windows):
    """Of words: dragons are hallucinated."""
    found = []
    for window in windows:
        words = window.text.split(" ")
        ends = window.start + np.cumsum([len(word) + 1 for word in words]) - 1
        spans = np.array([(end - len(word), end) for word, end in zip(words, ends, strict=True)])
        found.append(PartScores(spans, np.array([0.9 if "Dragon" in word else 0.1 for word in words])))
    return found


class Named(SimpleNamespace):
    def __call__(self, given):
        return self.of(given)


def everything(folder=None):
    odds = Named(name="lora", of=lambda group: np.array([float("Dragon" in one.response) for one in group]))
    marker = Named(name="lettuce", of=token_scores, longest=512)
    found = stand_in(folder, ScriptedChat(said, chosen), lettuce=marker, lora=odds)
    identity = SimpleNamespace(name="none", digest="0", dtype="float32")
    found.once("reader", lambda: SimpleNamespace(identity=identity))
    return found


@pytest.fixture(scope="module", autouse=True)
def quick(rows):
    """Tiny models everywhere; those that are trained have seen the first sources."""
    with pytest.MonkeyPatch.context() as patch:
        no_training(patch, rows.groups[:SEEN].tolist())
        patch.setattr(ragulator, "FOREST_TREES", (10,))
        patch.setattr(ragulator, "FOREST_DEPTHS", (5,))
        patch.setattr(ragulator, "BOOSTED_TREES", (20,))
        patch.setattr(ragulator, "BOOSTED_DEPTHS", (-1,))
        patch.setattr(ragulator, "LEAVES", (7,))
        patch.setattr(ragulator, "SUBSAMPLES", (1.0,))
        patch.setattr(redeep, "redeep_scores", redeep_scores)
        drawn = lambda examples, _: [one.passages for one in examples]  # noqa: E731
        patch.setattr(selfcheck, "samples_of", drawn)
        patch.setattr(selfcheck, "sample_settings", lambda _: {})
        yield


@pytest.mark.parametrize("name", BASELINES)
def test_planted_hallucinations_are_found_without_looking_at_their_labels(name, rows, tmp_path):
    baseline, resources = BASELINES[name], everything(tmp_path)
    learned, other_rows = rows.select(range(LEARN)), rows.select(range(LEARN, len(rows)))
    fitted = baseline.fit(learned, resources)
    scores = judged(fitted, unlabelled(other_rows), resources)
    probabilities = [one.probability for one in scores]
    assert all(0 <= value <= 1 for value in (*probabilities, *fitted.calibration.out_of_fold.probabilities))
    assert roc_auc_score(other_rows.labels, probabilities) == 1
    assert [one.flagged for one in scores if one.answered] == other_rows.labels.tolist()
    assert fitted.chosen
    unseen = range(SEEN if name in TRAINED else 0, LEARN)
    assert fitted.calibration.out_of_fold.rows.tolist() == list(unseen)
    assert len(fitted.calibration.out_of_fold.probabilities) == len(unseen)
    # The model of its fold judges, whatever else there is now.
    other = everything(tmp_path)
    assert judged(fitted, other_rows, other) == scores
    assert not other.model.calls
    # Nothing is drawn at random.
    again = baseline.fit(learned, everything()).calibration.out_of_fold.probabilities
    assert again == pytest.approx(fitted.calibration.out_of_fold.probabilities, abs=1e-6)
    assert (scores[0].parts is not None) == (name in PARTS)
    for example, score in zip(other_rows.examples, scores, strict=True):
        marked = [example.response[start:end] for start, end, _, mark in score.parts or () if mark]
        assert all(marked)
        if name in PARTS:
            assert any("Dragon" in part for part in marked) == bool(example.labels)


@pytest.mark.parametrize("name", BASELINES)
def test_too_few_sources_are_refused(name, rows):
    few = rows.select(range(SEEN, SEEN + 4))
    with pytest.raises(InputError, match="5 folds need at least 5 sources"):
        BASELINES[name].fit(few, everything())


@pytest.mark.parametrize("name", BASELINES)
def test_facts_say_what_it_is_and_what_it_needs(name):
    facts = BASELINES[name].facts
    assert facts.title
    assert facts.training
    assert facts.weights
    assert (facts.needs == ("signals",)) == name.startswith(("log-prob", "lookback", "saplma"))
    assert facts.slow == name.startswith(
        ("selfcheck", "redeep", "fine-tuned", "prompt-rubric", "chainpoll", "ragulator-prompted")
    )
    assert (facts.access == "text and samples") == name.startswith("selfcheck")
