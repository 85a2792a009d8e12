"""A detector that reads tokens: learned from stored records, with everything that was chosen in its card."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lrp4rag.classifiers.card import (
    Card,
    Distribution,
    Selection,
    TextInput,
    TokenInput,
    compares,
    package_versions,
)
from lrp4rag.classifiers.decision import COLUMNS, SHIFT_DEVIATION, TOPS, DecisionRule
from lrp4rag.classifiers.domain import FACETS, HELD, TEXT_FACETS, Facet, ranges
from lrp4rag.classifiers.ensemble import EPOCHS, Ensemble
from lrp4rag.classifiers.folder import FORMAT
from lrp4rag.classifiers.operating import (
    DEFAULT_POINT,
    RULES,
    by_set,
    faithful_quantiles,
    operating_points,
)
from lrp4rag.classifiers.text_model import TextModel
from lrp4rag.classifiers.token_model import TokenModel
from lrp4rag.classifiers.trees import COUNT, DEPTH
from lrp4rag.classifiers.vectors import FEATURE_VERSION
from lrp4rag.features.blocks import Block
from lrp4rag.features.plain import PlainTable
from lrp4rag.reader.comparer import bundled_comparer
from lrp4rag.training.rows import Rows
from lrp4rag.training.token_folds import FOLDS, fit_ensemble
from lrp4rag.training.tokens import Tokens

INNER = "out-of-fold log odds of the training rows: {folds} folds grouped by source, seed {seed}"
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
OUTER = "cross-validated probabilities of the training rows, those of the evidence below"


def fit_detector(
    rows: Rows,
    tokens: Tokens,
    blocks: Mapping[str, Block],
    seed: int = 0,
    probabilities: NDArray[np.float64] | None = None,
    point: str = DEFAULT_POINT,
    annotated: NDArray[np.intp] | None = None,
) -> TokenModel | TextModel:
    """Learn from all rows, whose features are `tokens`; without `blocks`, from their alarms alone, a detector
    that needs no reader. Raises `InputError` for several readers.

    Operating points are chosen on the rows' cross-validated `probabilities` (R,) by whole ensembles; without
    them, on those by single networks, which agree less: `by_set`. The card counts the `annotated` rows
    (default: all). It flags from `point` on.
    """
    tokens.require_sources()
    ensemble, alarms, fitted = fit_ensemble(tokens, np.arange(len(rows)), seed)
    source = INNER.format(folds=FOLDS, seed=seed) if probabilities is None else OUTER
    probabilities = fitted.probabilities if probabilities is None else probabilities
    columns = {name: alarm.columns for name, alarm in alarms.items()}
    comparer = bundled_comparer().digest if compares(blocks, columns) else ""
    details: dict[str, Any]
    if ensemble is None:
        details = {
            "classifier": TextModel.kind,
            "settings": ", ".join(alarms),
            "input": TextInput(reading=fitted.rule, alarms=columns, comparer=comparer),
            "domain": ranges(rows.readings(), TEXT_FACETS),
            "selections": _selections(seed, *_of_rule(fitted.rule, source, TEXT_FACETS)),
        }
        card = _card(rows, tokens, probabilities, point, annotated, **details)
        return TextModel(card, alarms, fitted.trees)
    tables = {name: block for name, block in blocks.items() if isinstance(block, PlainTable)}
    details = {
        "classifier": TokenModel.kind,
        "settings": ", ".join(blocks),
        "input": TokenInput(
            blocks=dict(blocks),  # type: ignore[arg-type]
            reading=fitted.rule,
            alarms=columns,
            comparer=comparer,
        ),
        "domain": ranges(rows.readings()),
        "reference": {
            feature: reference_of(
                # The values of single tokens.
                tokens.blocks[name][:, table.own_column(feature)],
                tokens.sentence,
                tokens.flags,
            )
            for name, table in tables.items()
            for feature in table.features
        },
        "selections": _selections(
            seed, *_of_blocks(ensemble, fitted.rule, seed), *_of_rule(fitted.rule, source, FACETS)
        ),
    }
    card = _card(rows, tokens, probabilities, point, annotated, **details)
    return TokenModel(card, ensemble, alarms, fitted.trees)


def _card(
    rows: Rows,
    tokens: Tokens,
    probabilities: NDArray[np.float64],
    point: str,
    annotated: NDArray[np.intp] | None,
    **details: Any,
) -> Card:
    """Make the card of a detector, with the operating points of its probabilities."""
    configuration = rows.store.configuration
    counted = np.arange(len(rows)) if annotated is None else annotated
    labels, values, others = by_set(tokens.labels, probabilities, tokens.sets)
    points = operating_points(labels, values, others)
    # Probabilities hold where both classes of each set count as many, if there are several.
    even = len(set(tokens.sets)) > 1
    return Card(
        format=FORMAT,
        reader=configuration.reader,
        composite=configuration.composite,
        target=configuration.target,
        feature_version=FEATURE_VERSION,
        threshold=points[point].threshold,
        rows=len(counted),
        hallucinated=int(tokens.labels[counted].sum()),
        versions=package_versions(),
        operating_points=points,
        faithful_quantiles=faithful_quantiles(labels, values, others),
        prevalence=0.5 if even else float(tokens.labels.mean()),
        **details,
    )


Chosen = tuple[str, ...]
"""What, what was chosen, among what, by which rule, and on which data if not on the training rows' scores."""


def _selections(seed: int, *choices: Chosen) -> list[Selection]:
    data = INNER.format(folds=FOLDS, seed=seed)
    return [
        Selection(what=what, chosen=chosen, among=among, rule=rule, data=where[0] if where else data)
        for what, chosen, among, rule, *where in choices
        if chosen  # there is no shift where there is one generator
    ]


def _of_blocks(ensemble: Ensemble, rule: DecisionRule, seed: int) -> tuple[Chosen, ...]:
    weights = ", ".join(f"{name} {ensemble.weight(name):.2f}" for name in ensemble.networks)
    return (
        (
            "blocks of features, their windows and layer; size and regularisation of networks and stacker; "
            "how much a token counts; numbers of highest tokens; that a generator shifts log odds, and by "
            "which prior; the rules of the operating points; how much wider the ranges are",
            ", ".join(ensemble.networks) + "; otherwise see docs/localisation.md and docs/detector.md",
            "not recorded",
            "by hand",
            "cross-validated results on RAGTruth QA's train split, also those of the evidence below",
        ),
        (
            "epochs of each network",
            "one number for each network",
            f"1 to {EPOCHS}",
            "lowest log loss on the fold held out",
            f"training rows: {FOLDS} folds grouped by source, seed {seed}",
        ),
        (
            "weights of the blocks' scores",
            f"{weights}; and those of neighbouring tokens' scores",
            "all",
            "logistic regression of tokens",
        ),
        (
            "probability from which a token of a suspect sentence is marked",
            f"{rule.token_threshold:.3f}",
            "all",
            "F1 of tokens",
        ),
    )


def _of_rule(rule: DecisionRule, points: str, facets: Mapping[str, Facet]) -> tuple[Chosen, ...]:
    weighted = zip(COLUMNS, rule.weights, strict=True)
    weights = [f"{name} {weight:.2f}" for name, weight in (*weighted, *rule.alarm_weights.items()) if weight]
    if rule.tree_weight:
        weights = [f"{FOLDS} times {COUNT} boosted trees of depth {DEPTH}, times {rule.tree_weight:.2f}"]
    slacks = ", ".join(
        f"{name} {facet.slack:g} times ({facet.below:g} below)" for name, facet in facets.items()
    )
    return (
        (
            f"log odds of a sentence, from the means of its highest {', '.join(map(str, TOPS))} tokens, by "
            "themselves and among neighbours, from its contradicted values, and from its alarms; a response "
            "has those of its highest sentence",
            f"{', '.join(weights)}; offset {rule.offset:.2f}",
            "weights by logistic regression of sentences, and boosted trees",
            "lower log loss of sentences, of trees on folds that they did not learn from; then logistic "
            "regression of responses on their highest sentence",
        ),
        (
            "what a generator adds to a response's log odds",
            ", ".join(f"{name} {shift:+.2f}" for name, shift in rule.shifts.items()),
            "all",
            f"likelihood under a normal prior of deviation {SHIFT_DEVIATION}",
        ),
        (
            "operating points",
            ", ".join(RULES),
            "all thresholds",
            "; ".join(f"{name}: {rule.words}" for name, rule in RULES.items()),
            points,
        ),
        (
            "ranges outside of which there is no verdict",
            "see domain",
            "none",
            f"what holds {HELD:.0%} of the training responses, wider: {slacks}",
            "training rows",
        ),
    )


def reference_of(
    values: NDArray[np.floating], sentence: NDArray[np.intp], flags: NDArray[np.bool_]
) -> Distribution:
    """Take quantiles of a feature's sentence means; a sentence is hallucinated where a token of it is
    annotated.

    `values`, `flags` and `sentence` (-1 for none) are of N tokens.
    """
    inside = sentence >= 0
    _, where, counts = np.unique(sentence[inside], return_inverse=True, return_counts=True)
    means, annotated = np.bincount(where, values[inside]) / counts, np.bincount(where, flags[inside]) > 0
    by_label = {"faithful": means[~annotated], "hallucinated": means[annotated]}
    return Distribution(
        **{name: np.quantile(of_label, QUANTILES).tolist() for name, of_label in by_label.items()}
    )
