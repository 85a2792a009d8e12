"""The page of raw scores: flag rates by kind of fault, with intervals over questions, beside controls."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.elsewhere.judging import CONTROLS, LENGTH, NOVEL, OURS
from benchmarks.elsewhere.measures import part
from benchmarks.elsewhere.page import WORDS, draw_ways
from benchmarks.kinds.calibration import calibration
from benchmarks.kinds.judging import (
    EVERYDAY,
    EVIDENCE,
    HARMLESS,
    HELD,
    HELD_EDITS,
    MINIMAL,
    ORIGINAL,
    RAGTRUTH,
    UNAFFECTED,
    Score,
)
from benchmarks.pages import write_page
from experiments.figures.style import save
from experiments.numbers import percent_interval
from experiments.pages import PAGE, RESULTS
from experiments.records import rounded, to_json
from lrp4rag.classifiers.card import Interval, Metrics
from lrp4rag.data import read_rows
from lrp4rag.report.numbers import number, percent, with_interval
from lrp4rag.training.metrics import (
    UNDEFINED,
    Draws,
    Flags,
    Labels,
    Scores,
    Values,
    intervals_of,
    ranking,
)
from lrp4rag.util.errors import InputError
from lrp4rag.util.files import write_atomically
from lrp4rag.util.strict_json import read_record

KIND = "python -m benchmarks.kinds"
RAW, SETUP = "raw", "judge.json"
RESAMPLES = 1000
RATE = 0.06
"""Of right answers that may be flagged, at the threshold by which kinds are compared."""
ALL, WITHIN = "all", "within generators"
VALUES = {"number", "name", "date or unit"}
"""Kinds of faults whose right value can be named."""
LABELS = {
    MINIMAL: "Minimal pairs",
    EVIDENCE: "Edited passages",
    HELD: "Everyday, held out",
    HELD_EDITS: "Everyday, passages edited, held out",
    EVERYDAY: "Everyday, out of fold",
    RAGTRUTH: "RAGTruth, out of fold",
}
REWORDED = ("what it rests on reworded", "what it does not use edited")
KINDS = {
    **WORDS,
    **dict(zip(HARMLESS, (REWORDED[0], REWORDED[1], REWORDED[1]), strict=True)),
    ORIGINAL: "passages as they were",
    UNAFFECTED: "edited for the other answer",
    "removed": "support removed",
}
"""What the page calls kinds of answers; others keep their names."""


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """The scores of a set as arrays (R,), and by name the answers (R,) with a kind of fault and the right
    ones of a kind. The threshold is that from which no more than `RATE` of the `reference` are flagged: all
    right answers but right refusals."""

    scores: Sequence[Score]
    labels: Labels
    groups: NDArray[np.str_]
    ways: Mapping[str, Scores]
    faults: Mapping[str, Flags]
    right: Mapping[str, Flags]

    @classmethod
    def of(cls, scores: Sequence[Score]) -> Scored:
        labels = np.array([score.label == 1 for score in scores], dtype=bool)
        kinds = np.array([words_of_kind(score) for score in scores], dtype=np.str_)
        # One that states nothing is below every threshold.
        ways = {OURS: np.array([score.probability or 0.0 for score in scores], dtype=np.float64)}
        if all(score.words is not None and score.novel is not None for score in scores):
            ways[LENGTH] = np.array([score.words for score in scores], dtype=np.float64)
            ways[NOVEL] = np.array([score.novel for score in scores], dtype=np.float64)
        masks = [
            {kind: side & (kinds == kind) for kind in dict.fromkeys(kinds[side].tolist())}
            for side in (labels, ~labels)
        ]
        faults, right = ({kind: masks[k][kind] for kind in sorted(masks[k])} for k in (0, 1))
        groups = np.array([score.question for score in scores], dtype=np.str_)
        every = ~labels & (kinds != WORDS["refusal"])
        return cls(scores, labels, groups, ways, {**faults, ALL: labels}, {**right, ALL: every})

    @property
    def reference(self) -> Flags:
        return self.right[ALL]

    @property
    def flagged(self) -> Flags | None:
        """At the detector's own threshold; None where the scores do not have it."""
        if any(score.threshold is None for score in self.scores):
            return None
        thresholds = np.array([score.threshold for score in self.scores], dtype=np.float64)
        flags: Flags = self.ways[OURS] >= thresholds
        return flags

    def threshold(self, way: str) -> float | None:
        """The lowest score that is flagged where `RATE` of the reference may be; None where nothing is."""
        flags = flagged_at(self.ways[way], self.reference, np.ones((1, len(self.labels))))[0]
        return float(self.ways[way][flags].min()) if flags.any() else None

    @property
    def twins(self) -> NDArray[np.intp]:
        """The number of the right answer that each was made of, (R,); -1 for none."""
        rows = {score.id: row for row, score in enumerate(self.scores)}
        return np.array([rows.get(score.copied_from, -1) for score in self.scores], dtype=np.intp)

    def above(self) -> dict[str, tuple[int, Metrics]]:
        """By kind and way, the part of faulty answers that score higher than the right answer that they were
        made of, and their number; a tie is half."""
        twins = self.twins
        counts = dict[str, tuple[int, Metrics]]()
        for kind, mask in self.faults.items():
            copies = np.flatnonzero(mask & (twins >= 0))
            counts[kind] = (
                len(copies),
                {
                    way: part((1 + np.sign(values[copies] - values[twins[copies]])) / 2, self.groups[copies])
                    for way, values in self.ways.items()
                },
            )
        return counts

    def named(self, kind: str) -> dict[str, Any] | None:
        """Of the flagged copies whose right value can be named: for how many a contradiction that lies in the
        wrong words names it."""
        flagged = self.flagged
        if kind not in VALUES or flagged is None or self.scores[0].seconds is None:
            return None
        rows = np.flatnonzero(self.faults[kind] & flagged & (self.twins >= 0))
        right = np.array(
            [
                any(value.inside and value.right for value in self.scores[int(row)].contradictions)
                for row in rows
            ],
            dtype=np.float64,
        )
        return {"flagged": len(rows), "right": int(right.sum()), "share": part(right, self.groups[rows])}


def words_of_kind(score: Score) -> str:
    """Call kinds alike in all sets; a refusal with a label is a false one."""
    if score.kind == "refusal" and score.label:
        return WORDS["bad_refusal"]
    return KINDS.get(score.kind, score.kind)


def flagged_at(scores: Scores, reference: Flags, weights: Scores) -> NDArray[np.bool_]:
    """Say under each of W weightings (W, R) which rows are flagged (W, R) by the lowest threshold that flags
    no more than `RATE` of the reference. Equal scores are flagged together."""
    order = np.argsort(-scores, kind="stable")
    ties = np.flatnonzero(np.diff(scores[order], prepend=np.inf))
    alarms = np.cumsum(np.add.reduceat((weights * reference)[:, order], ties, axis=1), axis=1)
    allowed = (alarms <= RATE * alarms[:, -1:] + 1e-9).sum(axis=1)
    places = np.empty(len(scores), dtype=np.intp)
    places[order] = np.repeat(np.arange(len(ties)), np.diff(ties, append=len(scores)))
    flags: NDArray[np.bool_] = places < allowed[:, None]
    return flags


def measure(scores: Sequence[Score]) -> dict[str, Any]:
    """Measure a set; benchmarks/README.md has the keys. Intervals are over its questions.

    Raises `InputError` for a set without a fault, or without a right answer.
    """
    scored = Scored.of(scores)
    if not scored.labels.any() or not scored.reference.any():
        raise InputError(f"the set {scores[0].set} needs faulty answers and right ones")
    draws = Draws.of(scored.groups, RESAMPLES)
    by_way = {
        way: intervals_of(draws.values(partial(by_kind, scored, values)))
        for way, values in scored.ways.items()
    }
    flagged, above = scored.flagged, scored.above()
    at_own = {} if flagged is None else intervals_of(draws.values(partial(decided, scored, flagged)))
    return {
        "questions": len(set(scored.groups.tolist())),
        "answers": len(scores),
        "abstained": part(np.array([float(score.abstained) for score in scores]), scored.groups),
        "seconds": median([score.seconds for score in scores if score.seconds is not None] or [0.0]),
        "threshold": scores[0].threshold,
        "thresholds": {way: scored.threshold(way) for way in scored.ways},
        "faults": [
            {
                "kind": kind,
                "answers": int(mask.sum()),
                "auroc": {way: values[f"auroc {kind}"] for way, values in by_way.items()},
                "flagged": {way: values[f"fault {kind}"] for way, values in by_way.items()},
                "flagged_by_default": at_own.get(f"fault {kind}", UNDEFINED),
                "balanced_accuracy": at_own.get(f"balanced {kind}", UNDEFINED),
                "copies": above[kind][0],
                "above": above[kind][1],
                "named": scored.named(kind),
            }
            for kind, mask in scored.faults.items()
        ],
        "right": [
            {
                "kind": kind,
                "answers": int(mask.sum()),
                "flagged": {way: values[f"right {kind}"] for way, values in by_way.items()},
                "flagged_by_default": at_own.get(f"right {kind}", UNDEFINED),
            }
            for kind, mask in scored.right.items()
        ],
        "generators": _generators(scored, draws),
        "calibration": calibration(scored.ways[OURS], scored.labels, scored.groups),
    }


def by_kind(scored: Scored, values: Scores, weights: Scores) -> Values:
    """Under each of W weightings (W, R), what part is flagged of each kind of fault ("fault KIND") and of
    right answers ("right KIND") where `RATE` of the reference are, and AUROC of each fault ("auroc KIND")."""
    flagged = weights * flagged_at(values, scored.reference, weights)
    results = Values()
    with np.errstate(divide="ignore", invalid="ignore"):
        for side, masks in (("fault", scored.faults), ("right", scored.right)):
            for kind, mask in masks.items():
                results[f"{side} {kind}"] = (flagged @ mask) / (weights @ mask)
        for kind, mask in scored.faults.items():
            results[f"auroc {kind}"] = _auroc(mask, scored.reference, values, weights)
    return results


def decided(scored: Scored, flagged: Flags, weights: Scores) -> Values:
    """The parts of what is `flagged` (R,), and balanced accuracy of each fault ("balanced KIND")."""
    results = Values()
    with np.errstate(divide="ignore", invalid="ignore"):
        alarms = (weights @ (flagged & scored.reference)) / (weights @ scored.reference)
        for kind, mask in scored.right.items():
            results[f"right {kind}"] = (weights @ (flagged & mask)) / (weights @ mask)
        for kind, mask in scored.faults.items():
            results[f"fault {kind}"] = recall = (weights @ (flagged & mask)) / (weights @ mask)
            results[f"balanced {kind}"] = (recall + 1 - alarms) / 2
    return results


def _auroc(faults: Flags, right: Flags, values: Scores, weights: Scores) -> Scores:
    rows = np.flatnonzero(faults | right)
    with np.errstate(divide="ignore", invalid="ignore"):
        return ranking(faults[rows], values[rows], weights[:, rows])["auroc"]


def _generators(scored: Scored, draws: Draws) -> list[dict[str, Any]]:
    """AUROC by generator and within generators (the mean over pairs of answers of the same one), of all
    responses and of those whose faults are conflicts only; [] where no generator is named."""
    names = np.array([score.generator or "" for score in scored.scores], dtype=np.str_)
    if not names.astype(bool).any():
        return []
    conflicts = np.array([score.label == 1 and _conflicts_only(score) for score in scored.scores], dtype=bool)

    def areas(values: Scores, weights: Scores) -> Values:
        results = Values()
        for part_name, faults in (("", scored.labels), ("conflicts ", conflicts)):
            results[f"{part_name}{ALL}"] = _auroc(faults, scored.reference, values, weights)
            total, pairs = np.zeros(len(weights)), np.zeros(len(weights))
            for name in dict.fromkeys(sorted(names.tolist())):
                mine, others = faults & (names == name), scored.reference & (names == name)
                area = _auroc(mine, others, values, weights) if mine.any() else np.full(len(weights), np.nan)
                results[f"{part_name}{name}"] = area
                count = (weights @ mine) * (weights @ others)
                total, pairs = total + np.where(count > 0, area, 0) * count, pairs + count
            with np.errstate(divide="ignore", invalid="ignore"):
                results[f"{part_name}{WITHIN}"] = total / pairs
        return results

    by_way = {way: intervals_of(draws.values(partial(areas, values))) for way, values in scored.ways.items()}
    lines = [(ALL, scored.labels), (WITHIN, scored.labels)]
    lines += [(name, scored.labels & (names == name)) for name in dict.fromkeys(sorted(names.tolist()))]
    return [
        {
            "generator": name,
            "hallucinated": int(mask.sum()),
            "auroc": {way: values[name] for way, values in by_way.items()},
            "conflicts": int((mask & conflicts).sum()),
            "auroc_conflicts": {way: values[f"conflicts {name}"] for way, values in by_way.items()},
        }
        for name, mask in lines
    ]


def _conflicts_only(score: Score) -> bool:
    return all("conflict" in kind.lower() for kind in score.kinds or [score.kind])


def write(out: Path) -> dict[str, Any]:
    """Write README.md, results.json and figures from the raw files of a folder; returns the results.

    Raises `InputError` where there are no raw files, or two that have scores of one set.
    """
    sets, names = dict[str, dict[str, Any]](), dict[str, str]()
    for path in sorted((out / RAW).glob("*.jsonl")):
        by_set: dict[str, list[Score]] = defaultdict(list)
        for _, score in read_rows(path, Score):
            by_set[score.set].append(score)
        for name, scores in by_set.items():
            if name in names:
                raise InputError(f"{names[name]} has scores of the set {name} too", path=path)
            names[name], sets[name] = path.name, {"raw": f"{RAW}/{path.name}", **measure(scores)}
    if not sets:
        raise InputError(f"there are no scores in {RAW}/", path=out)
    sets = {name: sets[name] for name in sorted(sets, key=lambda name: ([*LABELS, name].index(name), name))}
    setup = out / RAW / SETUP
    about = read_record(setup, "the setup of raw scores") if setup.exists() else None
    for name, result in sets.items():
        lines = {f"{line['kind']} ({line['answers']})": line["flagged"] for line in result["faults"]}
        xlabel = f"flagged, at {percent(RATE)} of right answers flagged (dotted)"
        save(draw_ways(lines, xlabel, reference=RATE), out / f"flagged-{name}")
    write_page(
        out / PAGE,
        Path(__file__).with_name("page.md.j2"),
        {"interval": with_interval, "share": percent_interval, "percent": percent, "number": number},
        about=about,
        program=KIND,
        sets=sets,
        labels={name: LABELS.get(name, name) for name in sets},
        gaps={name: shortfalls(result) for name, result in sets.items()},
        rate=RATE,
        within=WITHIN,
        setup=f"{RAW}/{SETUP}",
        ours=OURS,
        held=HELD,
        controls=CONTROLS,
    )
    record: dict[str, Any] = rounded(to_json({"kind": KIND, "rate": RATE, "setup": about, "sets": sets}))
    write_atomically(out / RESULTS, json.dumps(record, indent=1, allow_nan=False) + "\n")
    return record


def shortfalls(result: Mapping[str, Any]) -> list[str]:
    """Say in words where the detector falls short in a set: which kinds it flags less than half of, which no
    better than a control does, and whether harmless edits raise alarms."""
    gaps = list[str]()
    faults = [line for line in result["faults"] if line["kind"] != ALL]
    rare = [line for line in faults if (line["flagged"][OURS].value or 0) < 0.5]
    if rare:
        rare.sort(key=lambda line: line["flagged"][OURS].value or 0)
        kinds = ", ".join(f"{line['kind']} {percent(line['flagged'][OURS].value)}" for line in rare)
        gaps.append(f"less than half are flagged of {kinds}")
    for way in CONTROLS:
        behind = [line["kind"] for line in faults if not _ahead(line["flagged"], way)]
        if behind:
            gaps.append(f"as many or more are flagged by the {way} alone of {', '.join(behind)}")
    right = {line["kind"]: line["flagged_by_default"] for line in result["right"]}
    alarms = right[ALL].value
    if alarms is not None and alarms > RATE:
        gaps.append(f"its default threshold flags {percent_interval(right[ALL])} of right answers")
    before = right.get(KINDS[ORIGINAL], UNDEFINED).value
    more = [
        f"{percent(value.value)} after {kind}"
        for kind, value in right.items()
        if kind in REWORDED and before is not None and (value.value or 0) > before
    ]
    if more:
        gaps.append(f"by default it flags {percent(before)} of originals, and {', '.join(more)}")
    values = [line for line in faults if line["named"] is not None]
    if any(line["named"]["right"] < line["named"]["flagged"] for line in values):
        counts = (f"{line['kind']} {line['named']['right']} of {line['named']['flagged']}" for line in values)
        gaps.append(f"a flagged copy does not always have the right value named: {', '.join(counts)}")
    return gaps


def _ahead(flagged: Mapping[str, Interval], way: str) -> bool:
    return way not in flagged or (flagged[OURS].value or 0) > (flagged[way].value or 0)
