"""`measure`: every section of a breakdown, from labelled examples and what a comparison and a study kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.breakdown import alike, published, strata
from experiments.breakdown.claims import claims_of
from experiments.breakdown.page import Breakdown, Lengths
from experiments.breakdown.stored import read_stored
from experiments.systems.comparison.compare import FINE_TUNED, read_costs
from experiments.systems.encoders.embedder import Embedder
from experiments.systems.finetuned import TRAINING
from experiments.systems.grounded import starts_of
from experiments.systems.lettuce import TRAINING as LETTUCE_TRAINING
from lrp4rag.classifiers.card import Interval, Metrics
from lrp4rag.example import Example
from lrp4rag.reader.reader import load_reader
from lrp4rag.util.errors import InputError
from lrp4rag.util.strict_json import read_record

STATES = ("full", "state alone")


def measure(examples: Sequence[Example], compared: Path, study: Path, resamples: int) -> Breakdown:
    """Raises `InputError` for what no comparison or study wrote, and where an example is missing."""
    rows = read_stored(examples, compared / "scores")
    record = read_record(study, "what python -m experiments study wrote")
    reader = load_reader(device="cpu")
    encodings = [reader.encode(example) for example in rows.examples]
    offsets = [one.response_offsets for one in encodings]
    try:
        state = {name: _chosen(one, STATES) for name, one in record["ways"]["responses"].items()}
    except (KeyError, TypeError) as error:
        raise InputError(f"not what a study wrote: {error!r}", path=study) from error
    beside = alike.beside_published(rows)
    return Breakdown(
        rows=len(rows.examples),
        sources=len(set(rows.groups)),
        hallucinated=int(rows.labels.sum()),
        strata=strata.strata(rows, resamples),
        prevalences=strata.at_prevalences(rows, resamples),
        implicit=strata.implicit(rows, resamples),
        controls=alike.lines(rows, strata.OURS, alike.CONTROLS, resamples),
        twins=alike.twins(rows),
        systems=alike.counted(rows),
        slow=alike.lines(rows, alike.OF_SAMPLE, alike.slow(rows), resamples),
        lettuce=alike.lettuce(rows, offsets, resamples),
        claims=claims_of(rows, offsets, starts_of(Embedder.load(device="cpu")), resamples),
        here=strata.here(rows, beside, published.HALLUCINATED / published.ROWS, resamples),
        spans_here=alike.spans_here(rows, beside, offsets, resamples),
        lettuce_training=LETTUCE_TRAINING,
        reader=reader.identity.name,
        fine_tuned_steps=TRAINING.steps(rows.scores[FINE_TUNED].trained_on),
        lengths=Lengths.of(encodings),
        state=state,
        forwards={name: one.forwards for name, one in read_costs(compared / "costs.json").systems.items()},
    )


def _chosen(ways: dict[str, Any], names: Sequence[str]) -> dict[str, Metrics]:
    return {
        name: {metric: Interval(**one) for metric, one in ways[name].items() if isinstance(one, dict)}
        for name in names
    }
