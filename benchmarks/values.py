"""Add networks of values to a token detector that was trained without them.

    python -m benchmarks.values --store STORE --detector FOLDER --out NEW

STORE holds readings of the package's everyday questions (`lrp4rag extract everyday.jsonl --parts reading`).
The networks learn from their values, folds grouped by question; the card says so. `make detector` learns both
at once, and weighs them by responses that neither has seen: this is for a detector whose store is gone.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import click
import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from lrp4rag.classifiers import Model
from lrp4rag.classifiers.card import Selection
from lrp4rag.classifiers.decision import highest_of
from lrp4rag.classifiers.operating import ALARMS as ONE_IN_TEN
from lrp4rag.classifiers.operating import FEW_ALARMS, QUANTILES, threshold_at
from lrp4rag.classifiers.token_model import TokenModel
from lrp4rag.data import load_examples
from lrp4rag.example import Example
from lrp4rag.features.parts import READING
from lrp4rag.training.rows import Rows
from lrp4rag.training.sets import set_path
from lrp4rag.training.store import Store
from lrp4rag.training.token_folds import FOLDS, NOT_SCORED, fit_values
from lrp4rag.training.tokens import tokens_of
from lrp4rag.util.errors import InputError

ALARMS = 0.03
"""The part of everyday's faithful responses that values alone may flag, of the tenth in all."""
SLOPE = 4.0
"""Of the log odds of a value: one that is not suspect adds nothing to what the words say."""
EVERYDAY = "everyday"
DRAWN = 200_000

Scores = NDArray[np.float64]


def combined_quantiles(words: Scores, values: Scores, point: float, less: float, seed: int = 0) -> Scores:
    """Return the quantiles of everyday's faithful probabilities by words and values, as if these were
    independent: of words by quantiles (Q,) of a set that words flag `1 / less` times as often, of values by
    log odds (R,), which flag alone from `point` on."""
    draw = np.random.default_rng(seed)
    levels = np.linspace(0, 1, QUANTILES)
    unsupported = np.interp(1 - draw.random(DRAWN) / less, levels, words)
    differing = values[draw.integers(0, len(values), DRAWN)]
    low, high = 0.0, 1.0
    for _ in range(30):  # the threshold that one in ten reaches, where values reach it at `point`
        threshold = (low + high) / 2
        offset = logit(threshold) - SLOPE * point
        chances = 1 - (1 - unsupported) * (1 - expit(SLOPE * differing + offset))
        low, high = (threshold, high) if (chances >= threshold).mean() > ONE_IN_TEN else (low, threshold)
    quantiles: Scores = np.quantile(chances, levels)
    return quantiles


def _readable(store: Store, example: Example) -> bool:
    """Say whether its values are found where they were when it was stored."""
    try:
        return len(store.read_record(example).contrasts) >= 0
    except InputError:
        return False


@click.command()
@click.option("--store", type=click.Path(path_type=Path, exists=True), required=True)
@click.option("--detector", default="default", help="The detector to add them to.")
@click.option("--out", type=click.Path(path_type=Path), required=True)
def main(store: Path, detector: str, out: Path) -> None:
    """Add networks of values to a detector."""
    model = cast(TokenModel, Model.load(detector))
    kept = Store.existing(store)
    stored = [one for one in load_examples(set_path(Path(EVERYDAY))) if kept.has(one, READING)]
    rows = Rows(kept, tuple(one for one in stored if _readable(kept, one)))
    click.echo(f"{len(rows)} of {len(stored)} responses")
    tokens = tokens_of(rows, {})
    networks, outside = fit_values(tokens, np.arange(len(rows)))
    highest = highest_of(outside, tokens.values.owner, len(rows))
    faithful = np.maximum(highest[~tokens.labels], NOT_SCORED)
    point = float(np.quantile(faithful, 1 - ALARMS))
    evidence = model.card.evidence
    if evidence is None or EVERYDAY not in evidence.sets:
        raise click.ClickException(f"the card of '{detector}' has no evidence of {EVERYDAY}")
    alone = evidence.sets[EVERYDAY]
    recall, balanced = (alone[name].value or 0.0 for name in ("recall", "balanced_accuracy"))
    alarms = 1 + recall - 2 * balanced
    less = alarms / model.card.operating_points[FEW_ALARMS].false_positive_rate
    quantiles = combined_quantiles(np.array(model.card.faithful_quantiles), faithful, point, less)
    threshold = threshold_at(ONE_IN_TEN, quantiles.tolist())
    reads = model.input
    rule = replace(reads.reading, values=(SLOPE, float(logit(threshold) - SLOPE * point)))
    points = dict(model.card.operating_points)
    before = points[FEW_ALARMS]
    words = (
        f"{before.rule}, by an estimate; precision, recall and rate here are those of words from "
        f"{before.threshold:.2f}"
    )
    points[FEW_ALARMS] = before.model_copy(update={"threshold": threshold, "rule": words})
    chosen = Selection(
        what="networks of values, and what makes a probability of their log odds",
        chosen=f"slope {SLOPE:g}, offset {rule.values[1]:.2f}" if rule.values else "",
        among="see benchmarks/values.py",
        rule=f"values alone flag {ALARMS:.1%} of everyday's faithful responses, words and values a tenth, as "
        "if both were independent; the evidence below is that of words alone",
        data=f"values of {len(rows)} everyday responses: {FOLDS} folds grouped by question",
    )
    card = model.card.model_copy(
        update={
            "input": reads.model_copy(update={"reading": rule}),
            "threshold": threshold,
            "operating_points": points,
            "faithful_quantiles": quantiles.tolist(),
            "selections": [*model.card.selections, chosen],
        }
    )
    TokenModel(card, model.ensemble, networks).save(out)
    kinds = np.array([one.labels[0].kind if one.labels else "none" for one in rows.examples])
    for kind in sorted(set(kinds)):
        click.echo(f"{kind}: values alone flag {(highest[kinds == kind] >= point).mean():.3f}")
    click.echo(f"threshold {threshold:.3f}")


if __name__ == "__main__":
    main()
