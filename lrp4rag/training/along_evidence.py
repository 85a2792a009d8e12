"""What verdicts are worth while a response is still being written: each sentence judged when it ends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from lrp4rag.classifiers.card import AlongEvidence, Metrics
from lrp4rag.classifiers.decision import top_mean
from lrp4rag.classifiers.ensemble import Ensemble, Network
from lrp4rag.features.blocks import Block, parts_of
from lrp4rag.features.contrast import claims
from lrp4rag.features.record import Record
from lrp4rag.features.replay import AROUND
from lrp4rag.reader.encoding import Encoded, tokens_in
from lrp4rag.sentences import split_sentences
from lrp4rag.training.cache import Cell, Task
from lrp4rag.training.folds import Split
from lrp4rag.training.metrics import RESAMPLES, Draws, Values, intervals_of, weighted_metrics
from lrp4rag.training.rows import Rows
from lrp4rag.training.token_folds import BlockScores, fit_block, fit_stacker
from lrp4rag.training.tokens import Tokens, stored_records
from lrp4rag.training.trials import CrossValidation, Trial, one_thread

Numbers = NDArray[np.intp]
Scores = NDArray[np.float64]
Flags = NDArray[np.bool_]

VERSION = 1
"""Raised whenever a fold's sentences would come out differently."""
PARTS = ((1, 1), (2, 3), (4, 6), (7, 10_000))
"""Sentences of a response, counted from 1, for which figures are apart."""


@dataclass(frozen=True, slots=True, eq=False)
class Sentences:
    """S sentences of judged responses: each one's response (`row`) and `number` in it from 1, whether a token
    is annotated in it (`flagged`) and in the response up to its end (`wrong`); its probability by the whole
    response and when it ends (`whole`, `along`), and that of the response up to its end (`so_far`)."""

    row: Numbers
    number: Numbers
    flagged: Flags
    wrong: Flags
    whole: Scores
    along: Scores
    so_far: Scores


def along_evidence(
    study: CrossValidation, trial: Trial, shown: Numbers, *, resamples: int = RESAMPLES
) -> list[AlongEvidence]:
    """Of the rows `shown`: of all sentences, and of the first, second and third, and later ones. Models are
    fitted once more for it, since a cross-validation keeps what they said and not what they are."""
    found = study.cache.all(list(_cells(study, trial, shown)), "reading along")
    every = _joined(found)
    groups = study.rows.groups[every.row]
    bounds = [(1, PARTS[-1][1]), *PARTS]
    parts = [(every.number >= low) & (every.number <= high) for low, high in bounds]
    return [
        AlongEvidence(
            first=low,
            last=int(every.number[part].max()),
            sentences=int(part.sum()),
            **_figures(_take(every, part), groups[part], resamples),
        )
        for (low, _), part in zip(bounds, parts, strict=True)
        if part.any()
    ]


def _joined(some: Sequence[Sentences]) -> Sentences:
    names = [field.name for field in fields(Sentences)]
    columns: dict[str, Any] = {name: np.concatenate([getattr(one, name) for one in some]) for name in names}
    return Sentences(**columns)


def _take(every: Sentences, part: Flags) -> Sentences:
    columns: dict[str, Any] = {field.name: getattr(every, field.name)[part] for field in fields(Sentences)}
    return Sentences(**columns)


def _figures(some: Sentences, groups: NDArray[np.str_], resamples: int) -> Metrics:
    """Intervals are over sources, and of the difference paired."""

    def values(weights: Scores) -> Values:
        def of(labels: Flags, scores: Scores, name: str) -> Scores:
            return weighted_metrics(labels, scores, scores >= 0.5, weights)[name]

        whole, along = of(some.flagged, some.whole, "auroc"), of(some.flagged, some.along, "auroc")
        return {
            "whole": whole,
            "along": along,
            "difference": along - whole,
            "ece": of(some.flagged, some.along, "ece"),
            "ece_so_far": of(some.wrong, some.so_far, "ece"),
        }

    return intervals_of(Draws.of(groups, resamples).values(values))


def _cells(study: CrossValidation, trial: Trial, shown: Numbers) -> Iterator[Cell]:
    scores = study.score_cells(trial)
    for k, split in enumerate(study.folds(trial)):
        test = np.intersect1d(split.test, shown)
        votes = {name: cells[k] for name, cells in scores.items()}
        yield Cell(
            study.decision_key(trial, "along", k) | {"version": VERSION, "shown": len(test)},
            Sentences,
            partial(_task, study, split, test, votes),
        )


def _task(study: CrossValidation, split: Split, test: Numbers, votes: Mapping[str, Cell]) -> Task:
    blocks = {name: study.blocks[name] for name in votes}
    scores = {name: study.cache.read(cell) for name, cell in votes.items()}
    tokens = study.tokens.select(blocks)
    return partial(_fold, tokens, study.rows.select(test), blocks, split, test, scores, study.protocol.seed)


def _fold(
    tokens: Tokens,
    rows: Rows,
    blocks: Mapping[str, Block],
    split: Split,
    test: Numbers,
    scores: Mapping[str, BlockScores],
    seed: int,
) -> Sentences:
    """One fold's models, on each of the test rows as far as each of its sentences."""
    with one_thread():
        networks = {name: fit_block(Network.fit, tokens, name, split.train, seed)[0] for name in blocks}
    fitted = fit_stacker(tokens, split.train, {name: one.outside for name, one in scores.items()})
    ensemble, rule, found = Ensemble(networks, fitted.stacker), fitted.rule, list[tuple[float, ...]]()

    def judged(record: Record) -> tuple[Scores, float]:
        made = ensemble({name: block(record) for name, block in blocks.items()})
        return expit(made.among), rule.probability(made.alone, record.generator)

    for row, record in zip(test.tolist(), stored_records(rows, parts_of(blocks)), strict=True):
        flags, offsets = tokens.flags[tokens.owner == row], record.encoded.response_offsets
        whole, _ = judged(record)
        for number, (start, end) in enumerate(split_sentences(record.encoded.response), start=1):
            inside = np.flatnonzero(tokens_in(offsets, [(start, end)]))
            if not len(inside):
                continue
            marks, so_far = judged(until(record, end))
            count = len(marks)
            scored = [top_mean(one[inside[inside < count]], rule.sentence_top) for one in (whole, marks)]
            found.append((row, number, flags[inside].any(), flags[:count].any(), *scored, so_far))
    columns = np.array(found, dtype=np.float64).reshape(-1, 7).T
    return Sentences(
        columns[0].astype(np.intp), columns[1].astype(np.intp), columns[2] > 0, columns[3] > 0, *columns[4:]
    )


def until(record: Record, end: int) -> Record:
    """A stored record of a plain pass, as if the response ended at that character.

    A causal reader has read no further. Only what it says of the 25 characters after a value is not known
    where these are cut: there a value and its alternatives are compared by themselves.
    """
    encoded = record.encoded
    count = int(np.searchsorted([start for start, _ in encoded.response_offsets], end))
    shorter = replace(
        encoded,
        response=encoded.response[:end],
        response_ids=encoded.response_ids[:count],
        response_offsets=encoded.response_offsets[:count],
    )
    signals = {
        name: array if name in ("places", "scores") else array[:count]
        for name, array in record.signals.items()
    }
    places, scores = _alternatives_until(record, shorter, count)
    return replace(
        record,
        encoded=shorter,
        signals={**signals, "places": places, "scores": scores},
        states={**record.states, AROUND: record.states[AROUND][:, : count + 1]},
    )


def _alternatives_until(
    record: Record, shorter: Encoded, count: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """See `features.contrast` for the columns. Where what follows made another value of it ("3" of "3
    weeks"), it is left out."""
    places, scores = record.signals["places"].copy(), record.signals["scores"].copy()
    known = {(one.value.start, one.value.end): len(one.alternatives) for one in claims(shorter)}
    there = [number < known.get((start, end), 0) for start, end, number in places[:, :3].tolist()]
    kept = np.array(there, dtype=bool) & (places[:, 3] < count)
    sums = np.concatenate([[0.0], np.cumsum(record["logprob"])])
    starts = np.array([start for start, _ in record.encoded.response_offsets])
    for k in np.flatnonzero(kept & (places[:, 4] > count)):
        after = max(int(np.searchsorted(starts, places[k, 1])), int(places[k, 3]) + 1)
        places[k, 4] = count
        scores[k, 1] = sums[count] - sums[min(after, count)]  # as likely as what was written
    return places[kept], scores[kept]
