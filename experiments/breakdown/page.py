"""The page of a breakdown: Markdown, tables, a figure, and everything as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING

from experiments.breakdown import alike, published
from experiments.breakdown.alike import Line, Marked
from experiments.breakdown.claims import LENGTH, SYSTEM, Claims
from experiments.breakdown.strata import OURS, SYSTEMS, AtPrevalence, CountedFaithful, Here, Stratum
from experiments.figures.breakdown import draw_breakdown, draw_claims
from experiments.figures.style import save, save_table
from experiments.results_page import Results, write_record
from experiments.systems.encoders.training import Training
from lrp4rag.classifiers.card import Interval, Metrics
from lrp4rag.reader.encoding import Encoded
from lrp4rag.report.numbers import METRICS, bracketed, number
from lrp4rag.training.localisation import ALL

if TYPE_CHECKING:
    import pandas as pd

TEMPLATE = Path(__file__).parent / "templates" / "page.md.j2"
KIND = "lrp4rag experiments breakdown"


_MINILM = "a MiniLM of 22M parameters, trained in the folds"
REMARKS = {
    alike.LETTUCE: f"{_MINILM}; flagged by its calibrated score, not from a token at {alike.MARKS}",
    "entailment": f"{_MINILM} on annotated sentences; also ragulator-encoder (its paper: simulated pairs)",
    "ragulator-annotated": f"{_MINILM}; learned from annotated sentences, its paper from simulated pairs",
    "ragulator-lightgbm": f"simulated pairs, as its paper; a feature is of {_MINILM} on annotated sentences",
    "ragulator-forest": f"simulated pairs, as its paper; a feature is of {_MINILM} on annotated sentences",
    "grounded-in-context": f"{_MINILM}; its paper's did not learn from RAGTruth",
}
"""What must be known to read the rows of `here`."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Of prompt and response together, in tokens of the reader."""

    mean: float
    median: float
    largest: int

    @classmethod
    def of(cls, encodings: Sequence[Encoded]) -> Lengths:
        lengths = [len(one.prompt_ids) + len(one.response_ids) for one in encodings]
        return cls(fmean(lengths), median(lengths), max(lengths))


@dataclass(frozen=True, slots=True, eq=False)
class Breakdown:
    """All sections. `state` is what the study's page says of the hidden state alone, by generator."""

    rows: int
    sources: int
    hallucinated: int
    strata: list[Stratum]
    prevalences: list[AtPrevalence]
    implicit: dict[str, CountedFaithful]
    controls: dict[str, dict[str, Line]]
    twins: list[tuple[str, ...]]
    systems: int
    slow: dict[str, dict[str, Line]]
    lettuce: Marked
    claims: Claims
    here: dict[str, Here]
    spans_here: dict[str, Metrics]
    lettuce_training: Training
    reader: str
    fine_tuned_steps: int
    lengths: Lengths
    state: dict[str, dict[str, Metrics]]
    forwards: dict[str, float]


def write_page(found: Breakdown, out: Path, command: str, protocol: str, resamples: int) -> list[Path]:
    """README.md, results.json, strata.csv and the figures.

    Raises `InputError` where the folder has a page that this did not write.
    """
    write_record(
        out,
        KIND,
        found,
        command=command,
        protocol=protocol,
        resamples=resamples,
        published=[one._asdict() for one in (*published.PUBLISHED, *published.SPANS)],
    )
    return render(out)


def render(out: Path) -> list[Path]:
    """README.md, strata.csv and the figures of the results.json that is there, which stands last.

    Raises `InputError` where that is not what `python -m experiments breakdown` writes.
    """
    results = Results.of(out)
    found = results.found(Breakdown)
    files = [save_table(strata_table(found.strata), out / "strata.csv")]
    files += save(draw_breakdown(found.strata, found.prevalences), out / "breakdown")
    files += save(draw_claims(found.claims), out / "claims")
    page = results.write_page(
        TEMPLATE,
        {"percents": _percents},
        rate=_rate,
        found=found,
        protocol=results.get("protocol", str),
        resamples=results.get("resamples", int),
        every=ALL,
        ours=OURS,
        names=SYSTEMS,
        by=by_kind(found.strata),
        alike=alike,
        published=published,
        metrics=METRICS,
        remarks=REMARKS,
        grounded=SYSTEM,
        claim_length=LENGTH,
    )
    return [page, *files, results.path]


def _percents(one: Interval) -> str:
    """56.1 [54.0, 58.2], in percent as papers print it."""
    if one.value is None or one.low is None or one.high is None:
        return number(None if one.value is None else 100 * one.value, 1)
    return f"{100 * one.value:.1f} {bracketed(100 * one.low, 100 * one.high, 1)}"


def _rate(value: float) -> str:
    """0.0001, 0.00001"""
    return f"{value:.6f}".rstrip("0")


def by_kind(strata: Sequence[Stratum]) -> dict[str, list[Stratum]]:
    """Those of all generators together, by what they divide by."""
    found: dict[str, list[Stratum]] = {}
    for one in strata:
        if one.generator == ALL:
            found.setdefault(one.by, []).append(one)
    return found


def strata_table(strata: Sequence[Stratum]) -> pd.DataFrame:
    """Every metric of every system, and by what ours is ahead, a row for each."""
    import pandas as pd

    return pd.DataFrame(
        [
            {
                "generator": one.generator,
                "by": one.by,
                "stratum": one.name,
                "rows": one.rows,
                "hallucinated": one.hallucinated,
                "system": system,
                "metric": name,
                "value": interval.value,
                "low": interval.low,
                "high": interval.high,
            }
            for one in strata
            for system, metrics in _all_metrics(one)
            for name, interval in metrics.items()
        ]
    )


def _all_metrics(one: Stratum) -> list[tuple[str, Metrics]]:
    ahead = {f"{OURS} less {name}": metrics for name, metrics in one.ahead.items()}
    return [*one.systems.items(), *ahead.items()]
