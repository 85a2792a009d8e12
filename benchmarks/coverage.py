"""How often the 95 % intervals of cross-validated figures hold what they claim to.

    python -m benchmarks.coverage [--json]

Draws many data sets of independent sources with a known answer, cross-validates a logistic regression on
each, and counts how often the interval of its AUROC holds the right value: 0.5 for labels that no feature
tells, and the mean over all data sets where features do tell.

Keys of --json: for each data set, `mean` AUROC, `held` (the share of intervals that hold the right value),
`averaged` (the same for intervals of the mean of the repeats); `rows`, `seeds`, `repeats`.
"""

from __future__ import annotations

import json
from dataclasses import replace

import click
import numpy as np
from rich.progress import track
from sklearn.linear_model import LogisticRegression

from lrp4rag.classifiers.card import Interval
from lrp4rag.training.folds import HONEST
from lrp4rag.training.metrics import Draws, response_metrics, weighted_metrics
from lrp4rag.training.search import Contender, cross_validated

FEATURES = 8


def one(seed: int, rows: int, repeats: int, strength: float, resamples: int) -> tuple[Interval, Interval]:
    """The AUROC's interval as it is reported, and as it would be with repeats averaged in each draw."""
    generator = np.random.default_rng(seed)
    labels = generator.random(rows) < 0.5
    inputs = generator.normal(size=(rows, FEATURES)) + strength * labels[:, None] / np.sqrt(FEATURES)
    groups = np.arange(rows).astype(str)
    protocol = replace(HONEST, repeats=repeats, seed=seed)
    contender = Contender("features", "logistic", "", LogisticRegression(), inputs)
    outcome = cross_validated([contender], labels, groups, protocol)
    weights = np.concatenate(list(Draws.of(groups, resamples, seed).weights()))[1:]
    drawn = np.stack(
        [
            weighted_metrics(labels, probabilities, flagged, weights)["auroc"]
            for probabilities, flagged in zip(outcome.probabilities, outcome.flagged, strict=True)
        ]
    )
    value = float(np.mean([response_metrics(labels, each, 0.5)["auroc"] for each in outcome.probabilities]))
    quantiles = [np.quantile(values, [0.025, 0.975]) for values in (drawn.ravel(), drawn.mean(0))]
    ours, averaged = (Interval(value=value, low=float(low), high=float(high)) for low, high in quantiles)
    return ours, averaged


def coverage(intervals: list[Interval], right: float) -> float:
    held = [
        one.low is not None and one.high is not None and one.low <= right <= one.high for one in intervals
    ]
    return float(np.mean(held))


@click.command()
@click.option("--rows", default=400, show_default=True)
@click.option("--seeds", default=200, show_default=True)
@click.option("--repeats", default=3, show_default=True)
@click.option("--resamples", default=300, show_default=True)
@click.option("--json", "as_json", is_flag=True)
def main(rows: int, seeds: int, repeats: int, resamples: int, as_json: bool) -> None:
    results: dict[str, object] = {"rows": rows, "seeds": seeds, "repeats": repeats}
    for name, strength in {"noise": 0.0, "weak": 0.5, "strong": 1.0}.items():
        made = [
            one(seed, rows, repeats, strength, resamples)
            for seed in track(range(seeds), description=name, disable=as_json)
        ]
        ours, averaged = (list(each) for each in zip(*made, strict=True))
        mean = float(np.mean([interval.value for interval in ours]))
        right = 0.5 if strength == 0 else mean
        results[name] = {
            "mean": round(mean, 3),
            "held": coverage(ours, right),
            "averaged": coverage(averaged, right),
        }
    print(json.dumps(results) if as_json else json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
