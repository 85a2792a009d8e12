"""Controls: trivial baselines that stand beside a detector's figures, through the same folds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lrp4rag.classifiers.calibration import Candidate, Labels, candidates_on
from lrp4rag.classifiers.vectors import VECTORS, Features
from lrp4rag.example import Example
from lrp4rag.lrp.resampling import Mode
from lrp4rag.training.folds import Protocol
from lrp4rag.training.rows import Rows
from lrp4rag.training.validation import Outcome
from lrp4rag.util.text import words_of

Values = NDArray[np.float64]
Candidates = tuple[Candidate, ...]
Control = Callable[[Rows], Candidates]
"""Makes the candidates that cross-validation chooses among."""
FLAG_EVERYTHING = "flag everything"


def logistic(inputs: NDArray[np.floating], name: str, penalties: Sequence[float] = (1.0,)) -> Candidates:
    """Make a logistic regression on standardised inputs (rows, columns), one candidate for each penalty C."""
    return tuple(
        Candidate(
            name=name,
            classifier="logistic",
            settings=f"C={penalty:g}",
            estimator=make_pipeline(StandardScaler(), LogisticRegression(C=penalty, max_iter=1000)),
            inputs=inputs,
        )
        for penalty in penalties
    )


def one_number(values: Sequence[float], name: str) -> Candidates:
    """Make candidates on one number per row: for numbers that say most in mid-range, an SVM stands beside
    logistic regression."""
    inputs = np.array(values, dtype=float)[:, None]
    return (*logistic(inputs, name), *candidates_on("svm", inputs, name))


def length(rows: Rows) -> Candidates:
    """Make candidates on the number of response tokens."""
    return one_number([len(row.response_ids) for row in rows.encodings], "length")


def novel_words(rows: Rows) -> Candidates:
    """Make candidates on the number of distinct response words that no passage contains."""
    return one_number([len(words_outside(example)) for example in rows.examples], "novel words")


def words_outside(example: Example) -> set[str]:
    """Collect the distinct words of a response, in lower case, that no passage has."""
    in_passages = {word for passage in example.passages for word in words_of(passage)}
    return set(words_of(example.response or "")) - in_passages


def on_relevance(rows: Rows, classifier: str, features: Sequence[Features]) -> Candidates:
    """Make the classifier's candidates on relevance, at each length."""
    return on_vectors(classifier, features, lambda choice: choice(rows.relevances))


def constant(rows: Rows, classifier: str, features: Sequence[Features], mode: Mode) -> Candidates:
    """Make candidates on relevance 1 for every token: what resampling reveals of the length."""

    def ones(values: Values, _: np.random.Generator) -> Values:
        return np.ones_like(values)

    return imitated(rows, classifier, [replace(choice, mode=mode) for choice in features], ones)


def imitated(
    rows: Rows,
    classifier: str,
    features: Sequence[Features],
    imitate: Callable[[Values, np.random.Generator], Values],
    seed: int = 0,
) -> Candidates:
    """Make candidates on relevance that `imitate` has replaced before resampling."""

    def inputs(features: Features) -> Values:
        rng = np.random.default_rng(seed)  # the same imitation for every length
        vectors = [np.asarray(VECTORS[features.vector].of(row), dtype=float) for row in rows.relevances]
        return features.resampled([imitate(vector, rng) for vector in vectors])

    return on_vectors(classifier, features, inputs)


def on_vectors(
    classifier: str, features: Sequence[Features], inputs: Callable[[Features], Values]
) -> Candidates:
    """Make every candidate of the classifier on the inputs of every length."""
    return tuple(
        candidate
        for choice in features
        for candidate in candidates_on(classifier, inputs(choice), f"{choice.vector}, {choice.length}")
    )


def flag_everything(labels: Labels, protocol: Protocol) -> Outcome:
    """Call every row hallucinated, with probability 1."""
    probabilities = np.ones((protocol.repeats, len(labels)))
    return Outcome(probabilities, probabilities.astype(bool))


WHOLE: dict[str, Control] = {"length only": length, "novel words": novel_words}
"""Controls of whole responses. The longer a response, the higher its highest scores, even of noise: so length
is one of them."""
