"""Candidates on a few numbers of each response: of its words, likelihood, states, or pooled features.

Each function gives the candidates that cross-validation chooses among (see `training.validation`).
"""

from __future__ import annotations

from difflib import SequenceMatcher
from itertools import pairwise

import numpy as np

from experiments.tokens.extraction import SIGNALS, records
from experiments.tokens.response import response_features
from lrp4rag.example import Example
from lrp4rag.training.controls import Candidates, logistic, one_number
from lrp4rag.training.rows import Rows
from lrp4rag.util.text import words_of

LEXICAL_FEATURES = (
    "words of the response",
    "distinct words that no passage has",
    "their share of the response's distinct words",
    "distinct numbers that no passage has",
    "share of the response's pairs of neighbouring words that a passage has",
    "longest run of words copied from one passage",
)
LEXICAL_PENALTIES = (0.01, 0.1, 1.0)
# Neighbouring layers say nearly the same, and each costs as much as another classifier.
LAYER_STEP = 6
# There are about as many columns as rows: without a strong penalty the rows are learned by heart.
STATE_PENALTIES = (1e-4, 1e-3, 1e-2)
# Poolings of one feature say nearly the same.
POOLED_PENALTIES = (1e-3, 1e-2, 1e-1)


def lexical(rows: Rows) -> Candidates:
    """Logistic regression on the six `LEXICAL_FEATURES`."""
    inputs = np.array([lexical_features(example) for example in rows.examples])
    return logistic(inputs, "lexical", LEXICAL_PENALTIES)


def lexical_features(example: Example) -> tuple[float, ...]:
    """The six `LEXICAL_FEATURES` of one example, in their order. Words are compared in lower case."""
    response = words_of(example.response or "")
    passages = [words_of(passage) for passage in example.passages]
    known = {word for passage in passages for word in passage}
    known_pairs = {pair for passage in passages for pair in pairwise(passage)}
    pairs = list(pairwise(response))
    novel = set(response) - known
    return (
        float(len(response)),
        float(len(novel)),
        len(novel) / max(len(set(response)), 1),
        float(sum(any(sign.isdigit() for sign in word) for word in novel)),
        sum(pair in known_pairs for pair in pairs) / max(len(pairs), 1),
        float(max(_longest_run(response, passage) for passage in passages)),
    )


def _longest_run(response: list[str], passage: list[str]) -> int:
    return SequenceMatcher(None, response, passage, autojunk=False).find_longest_match().size


def log_probability(rows: Rows) -> Candidates:
    """The mean log-probability of the response's tokens (nats)."""
    return one_number([float(row.mean()) for row in rows.arrays("logprob", SIGNALS)], "log-probability")


def entropy(rows: Rows) -> Candidates:
    """The mean entropy of the reader's next-token distributions (nats)."""
    return one_number([float(row.mean()) for row in rows.arrays("entropy", SIGNALS)], "entropy")


def passage_gain(rows: Rows) -> Candidates:
    """By how much the passages raise the mean log-probability (nats): with them, less without them."""
    likelihoods = (rows.arrays(name, SIGNALS) for name in ("logprob", "logprob_without_passages"))
    pairs = zip(*likelihoods, strict=True)
    return one_number([float((row - without).mean()) for row, without in pairs], "gain of the passages")


def hidden_probe(rows: Rows) -> Candidates:
    """Logistic regression on one layer's hidden state (d), at the last response token or their mean.

    Every sixth layer (0 is the embedding) and the last are candidates.
    """
    candidates: Candidates = ()
    for signal, place in (("hidden_mean", "mean"), ("hidden_last", "last token")):
        states = rows.arrays(signal, SIGNALS)
        top = len(states[0]) - 1
        for layer in sorted({*range(LAYER_STEP, top, LAYER_STEP), top}):
            inputs = np.stack([row[layer] for row in states])
            candidates += logistic(inputs, f"hidden state of layer {layer}, {place}", STATE_PENALTIES)
    return candidates


def lookback(rows: Rows) -> Candidates:
    """Logistic regression on each head's mean lookback ratio (layers x heads): the share of its attention
    that is on the prompt rather than on the response so far (Chuang et al., arXiv 2407.07071)."""
    inputs = np.stack([row.mean(axis=-1).ravel() for row in rows.arrays("lookback", SIGNALS)])
    return logistic(inputs, "lookback ratios", STATE_PENALTIES)


def pooled_features(rows: Rows) -> Candidates:
    """Logistic regression on every token feature, pooled over the response in every way."""
    found = [response_features(record) for record in records(rows)]
    names = sorted(set.intersection(*(set(one) for one in found)))  # R_prompt may be stored of some only
    return logistic(np.array([[one[name] for name in names] for one in found]), "pooled", POOLED_PENALTIES)
