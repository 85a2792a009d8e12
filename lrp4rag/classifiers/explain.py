"""What moved a verdict: each named feature is put at its training mean, and the change is told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.card import Distribution
from lrp4rag.classifiers.committee import vote
from lrp4rag.classifiers.token_model import TokenModel
from lrp4rag.classifiers.verdict import Reason, Verdict
from lrp4rag.features.record import Record
from lrp4rag.features.table import FEATURES, TokenTable
from lrp4rag.reader.encoding import tokens_in

REASONS = 3
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def reasons_of(
    model: TokenModel, record: Record, verdict: Verdict, reference: Mapping[str, Distribution]
) -> tuple[Reason, ...]:
    """The features that moved one sentence most towards the verdict: the most suspect sentence of a response
    that is called hallucinated, else the least suspect one.

    A feature is put at its mean over the training tokens, at all its windows, and what that takes off the
    sentence's mean log odds is what the feature moved. Features of states have no words and are not told.
    """
    scores = [sentence.probability for sentence in verdict.sentences]
    if not scores or any(score is None for score in scores):
        return ()
    ranked = np.argsort(np.array(scores, dtype=np.float64), kind="stable")
    flagged = verdict.probability is not None and verdict.probability >= (verdict.threshold or 0)
    chosen = int(ranked[-1] if flagged else ranked[0])
    sentence = verdict.sentences[chosen]
    inside = tokens_in(record.encoded.response_offsets, [(sentence.start, sentence.end)])
    found = []
    for feature, moved in _moved(model, record, inside):
        held = reference.get(feature)
        if held is not None and (moved > 0) == flagged:
            value = float(FEATURES[feature](record)[inside].mean())
            found.append(Reason(feature, moved, chosen, value, held.faithful))
    return tuple(sorted(found, key=lambda reason: -abs(reason.moved))[:REASONS])


def _moved(model: TokenModel, record: Record, inside: NDArray[np.bool_]) -> Iterator[tuple[str, float]]:
    """Each feature of the tables, and what it adds to the mean log odds of some tokens."""
    for name, block in model.blocks.items():
        if not isinstance(block, TokenTable):
            continue
        table = block(record)[inside]
        members = model.committee.members[name]
        before, mean = vote(members, table), np.mean([member.mean for member in members], axis=0)
        for feature in block.features:
            columns = block.columns_of(feature)
            without = table.copy()
            without[:, columns] = mean[columns]
            moved = float((before - vote(members, without)).mean())
            yield feature, model.committee.weight(name) * moved


def reference_of(
    values: NDArray[np.floating], sentence: NDArray[np.intp], flags: NDArray[np.bool_]
) -> Distribution:
    """Quantiles of a feature's sentence means; a sentence is hallucinated where a token of it is annotated.

    `values`, `flags` and `sentence` (-1 for none) are of N tokens.
    """
    inside = sentence >= 0
    _, where = np.unique(sentence[inside], return_inverse=True)
    means = np.bincount(where, values[inside]) / np.bincount(where)
    annotated = np.bincount(where, flags[inside]) > 0
    faithful, hallucinated = (
        tuple(np.quantile(means[part], QUANTILES).tolist()) for part in (~annotated, annotated)
    )
    return Distribution(faithful=faithful, hallucinated=hallucinated)
