"""What kinds of hallucination are found: responses with spans of one kind only, and spans touched."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.card import Interval, KindEvidence
from lrp4rag.example import Example
from lrp4rag.reader.encoding import Encoded, tokens_in
from lrp4rag.training.metrics import (
    RESAMPLES,
    UNDEFINED,
    Draws,
    Values,
    intervals_of,
    share,
    weighted_token_metrics,
)
from lrp4rag.training.rows import Rows

Flags = NDArray[np.bool_]
Scores = NDArray[np.float64]

GRADES = ("Evident ", "Subtle ")
"""How RAGTruth's kinds begin: conflicts are both evident and subtle ones."""


def kind_evidence(
    rows: Rows, probabilities: Scores, marked: Sequence[Flags], *, resamples: int = RESAMPLES
) -> list[KindEvidence]:
    """By kind of label, whatever its grade, and then by grade, of the rows' `probabilities` (R,) and of their
    `marked` tokens, (t,) each. Empty where labels have no kinds.

    Responses whose labels are all of the kind are told from faithful ones: among all, and from those of the
    same generator only.
    """
    kinds = [kinds_in(example) for example in rows.examples]
    grades = sorted(set().union(*kinds) - {""})
    families = dict.fromkeys(map(_family, grades))
    found = []
    for kind in dict.fromkeys((*families, *grades)):
        among = {grade for grade in grades if kind in (grade, _family(grade))}
        chosen = np.array([bool(theirs) and theirs <= among for theirs in kinds])
        part = chosen | ~rows.labels
        spans, touched = _spans(rows, among, marked)
        told: dict[str, Interval] = {}
        if chosen.any() and not rows.labels.all():
            told = _told(
                chosen[part], probabilities[part], rows.generators[part], rows.groups[part], resamples
            )
        found.append(
            KindEvidence(
                kind=kind,
                responses=int(chosen.sum()),
                auroc=told.get("all", UNDEFINED),
                within_generators=told.get("within", UNDEFINED),
                spans=len(spans),
                touched=share(touched, rows.groups[spans], resamples=resamples),
            )
        )
    return found


def kinds_in(example: Example) -> set[str]:
    """What the faults of a response are called in its labels."""
    return {label.kind or "" for label in example.labels or ()}


def _family(kind: str) -> str:
    """A kind without its grade, with a capital."""
    for grade in GRADES:
        kind = kind.removeprefix(grade)
    return kind[:1].upper() + kind[1:]


def _spans(rows: Rows, kinds: set[str], marked: Sequence[Flags]) -> tuple[NDArray[np.intp], Flags]:
    """Of each label of these kinds: the number of its row, and whether a marked token is in it."""
    where, touched = list[int](), list[bool]()
    for k, (example, encoded, flags) in enumerate(zip(rows.examples, rows.encodings, marked, strict=True)):
        for one in _touched(example, encoded, kinds, flags):
            where.append(k)
            touched.append(one)
    return np.array(where, dtype=np.intp), np.array(touched, dtype=bool)


def _touched(example: Example, encoded: Encoded, kinds: set[str], flags: Flags) -> list[bool]:
    return [
        bool(flags[tokens_in(encoded.response_offsets, [(label.start, label.end)])].any())
        for label in example.labels or ()
        if label.kind in kinds
    ]


def _told(
    labels: Flags,
    scores: Scores,
    generators: NDArray[np.str_],
    groups: NDArray[np.str_],
    resamples: int,
) -> dict[str, Interval]:
    """AUROC of `all` rows, and `within` generators: of all pairs of two rows by one."""

    def auroc(weights: Scores, part: Flags) -> Scores:
        values: Scores = weighted_token_metrics(labels[part], scores[part], labels[part], weights[:, part])[
            "auroc"
        ]
        return values

    def values(weights: Scores) -> Values:
        right, pairs = np.zeros(len(weights)), np.zeros(len(weights))
        for name in sorted(set(generators)):
            part = generators == name
            if len(set(labels[part])) < 2:
                continue
            count = weights[:, part & labels].sum(1) * weights[:, part & ~labels].sum(1)
            right += np.where(count > 0, np.nan_to_num(auroc(weights, part)) * count, 0.0)
            pairs += count
        within = np.divide(right, pairs, out=np.full(len(pairs), np.nan), where=pairs > 0)
        return {"all": auroc(weights, np.ones(len(labels), dtype=bool)), "within": within}

    with np.errstate(divide="ignore", invalid="ignore"):
        return intervals_of(Draws.of(groups, resamples).values(values))
