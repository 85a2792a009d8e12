"""A detector that reads tokens: learned from stored records, with everything that was chosen in its card."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.card import (
    Card,
    Distribution,
    ReadingSettings,
    Selection,
    TokenInput,
    package_versions,
)
from lrp4rag.classifiers.detector import FittedDetector, one_origin
from lrp4rag.classifiers.domain import FACETS, HELD, ranges
from lrp4rag.classifiers.explain import reference_of
from lrp4rag.classifiers.features import FEATURE_VERSION
from lrp4rag.classifiers.folder import FORMAT
from lrp4rag.classifiers.operating import DEFAULT_POINT, RULES, faithful_quantiles, operating_points
from lrp4rag.classifiers.pooling import SENTENCE_TOPS, TOPS
from lrp4rag.classifiers.reading import SHIFT_DEVIATION
from lrp4rag.classifiers.token_model import FOLDS, Fit, TokenModel, Tokens, fit_tokens
from lrp4rag.features.blocks import Block
from lrp4rag.features.table import TokenTable
from lrp4rag.training.rows import Rows

CLASSIFIER = "tokens"
INNER = "out-of-fold log odds of the training rows: {folds} folds grouped by source, seed {seed}"
OUTER = "cross-validated probabilities of the training rows, those of the evidence below"


def fit_detector(
    rows: Rows,
    tokens: Tokens,
    blocks: Mapping[str, Block],
    seed: int = 0,
    judged: NDArray[np.float64] | None = None,
) -> FittedDetector:
    """Learn from all rows, whose features are `tokens`; raises `InputError` for several readers.

    `judged` (R,) are cross-validated probabilities of the rows, on which operating points are chosen: whole
    committees made them. Without them they are chosen on what single members say of rows held out, who agree
    less than a committee does.
    """
    first = one_origin(rows.relevances)
    tokens.require_sources()
    fitted = fit_tokens(tokens, np.arange(len(rows)), seed)
    counted = fitted.counted
    probabilities = counted.probabilities if judged is None else judged
    points = operating_points(tokens.labels, probabilities)
    card = Card(
        format=FORMAT,
        classifier=CLASSIFIER,
        settings=", ".join(blocks),
        reader=first.reader,
        composite=first.composite,
        target=first.target,
        input=TokenInput(blocks=dict(blocks), reading=ReadingSettings(**asdict(counted.reading))),
        feature_version=FEATURE_VERSION,
        threshold=points[DEFAULT_POINT].threshold,
        rows=len(rows),
        hallucinated=int(tokens.labels.sum()),
        versions=package_versions(),
        operating_points=points,
        faithful_quantiles=faithful_quantiles(tokens.labels, probabilities),
        domain=ranges(rows.records()),
        reference=dict(_reference(tokens, blocks)),
        selections=list(_selections(fitted, seed, OUTER if judged is not None else INNER)),
    )
    return FittedDetector(TokenModel(dict(blocks), fitted.committee, counted.reading), card)


def _reference(tokens: Tokens, blocks: Mapping[str, Block]) -> Iterator[tuple[str, Distribution]]:
    """Of each feature of the tables; a table's first columns are features of single tokens."""
    for name, block in blocks.items():
        if isinstance(block, TokenTable):
            for feature in block.features:
                values = tokens.blocks[name][:, block.columns_of(feature)[block.windows.index(1)]]
                yield feature, reference_of(values, tokens.sentence, tokens.flags)


def _selections(fitted: Fit, seed: int, points: str) -> Iterator[Selection]:
    data = INNER.format(folds=FOLDS, seed=seed)
    reading, committee = fitted.counted.reading, fitted.committee
    yield Selection(
        what="blocks of features, their windows and layer; size and regularisation of networks and of votes; "
        "which numbers of tokens contend, and that neighbours vote on marks only; that a generator "
        "shifts, and by which prior; the rules of the operating points; how much wider the ranges are",
        chosen=", ".join(committee.members) + "; otherwise see docs/localisation.md and docs/detector.md",
        among="not recorded",
        rule="by hand",
        data="cross-validated results on RAGTruth QA's train split, also those of the evidence below",
    )
    yield Selection(
        what="epochs of each network",
        chosen="one number for each network",
        among="1 to 20",
        rule="lowest log loss on the fold held out",
        data=f"training rows: {FOLDS} folds grouped by source, seed {seed}",
    )
    yield Selection(
        what="weights of the blocks' votes",
        chosen=", ".join(f"{name} {committee.weight(name):.2f}" for name in committee.members)
        + "; and those of neighbouring tokens' votes",
        among="all",
        rule="logistic regression of tokens",
        data=data,
    )
    yield Selection(
        what="number of tokens that a response's score is the mean of",
        chosen=str(reading.top),
        among=", ".join(map(str, TOPS)),
        rule="AUROC of responses",
        data=data,
    )
    yield Selection(
        what="probability of a response",
        chosen=f"sigmoid({reading.slope:.2f} x + {reading.offset:.2f})",
        among="all",
        rule="Platt's sigmoid",
        data=data,
    )
    if reading.shifts:
        yield Selection(
            what="what a generator adds to a response's log odds",
            chosen=", ".join(f"{name} {shift:+.2f}" for name, shift in reading.shifts.items()),
            among="all",
            rule=f"likelihood under a normal prior of deviation {SHIFT_DEVIATION}",
            data=data,
        )
    yield Selection(
        what="probability from which a token is marked",
        chosen=f"{reading.token_threshold:.3f}",
        among="all",
        rule="F1 of tokens",
        data=data,
    )
    yield Selection(
        what="probability from which a sentence is marked, and number of tokens it is the mean of",
        chosen=f"{reading.sentence_threshold:.3f}, {reading.sentence_top}",
        among=f"all, {', '.join(map(str, SENTENCE_TOPS))}",
        rule="F1 of sentences",
        data=data,
    )
    yield Selection(
        what="operating points",
        chosen=", ".join(RULES),
        among="all thresholds",
        rule="; ".join(f"{name}: {rule.words}" for name, rule in RULES.items()),
        data=points.format(folds=FOLDS, seed=seed),
    )
    yield Selection(
        what="ranges outside of which there is no verdict",
        chosen="see domain",
        among="none",
        rule=f"what holds {HELD:.0%} of the training responses, wider on both sides: {_slacks()}",
        data="training rows",
    )


def _slacks() -> str:
    return ", ".join(f"{name} {facet.slack:g} times" for name, facet in FACETS.items())
