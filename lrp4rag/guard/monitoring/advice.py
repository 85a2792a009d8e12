"""Advice on a drift: which topics lack documents, which generator changed, what else did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lrp4rag.guard.monitoring.drift import (
    GROUPS,
    MEASURES,
    NAME,
    Change,
    Direction,
    Drift,
    value_words,
)
from lrp4rag.guard.monitoring.statistics import heterogeneity
from lrp4rag.guard.monitoring.windows import VERSIONS
from lrp4rag.util.text import one_line

CAUSES = {
    "unavailable": "More answers could not be judged ({}): look for deadlines and refusals in the server's "
    "log and its /metrics, and at the upstream.",
    "abstained": "More answers are unlike what the detector learned from ({}): look for another language, "
    "format or length.",
    "knowledge gap": "More questions find no passage that is fit to answer from ({}): look at the index, at "
    "what expired, and at the gate's minimum.",
    "contradicted": "More answers have values that a passage has otherwise ({}): see whether the generator "
    "or its prompt changed, or whether older versions of documents are retrieved beside newer ones.",
    "unsupported": "More answers say what no passage says ({}): see whether the generator or its prompt "
    "changed, or whether what is retrieved got weaker.",
    "retrieval score": "Retrieval is weaker ({}): look at the index and its embedder.",
    "score at the gate": "Passages score lower at the gate ({}): look at the index and its embedder.",
    "nothing retrieved": "More requests find no passage ({}): look at the index, and at what expired.",
}
CHANGES = {
    "length": "Answers are of another length ({} characters): the generator or its prompt changed. The "
    "longer an answer, the likelier it has something that is hallucinated.",
    "passages": "Answers rest on another number of passages ({}): retrieval changed.",
    **{
        f"{by}s": f"Other {by}s are asked for or used: {{name}} went from {{}} of the answers. What changed "
        f"overall may be that; compare within {by}s."
        for by in GROUPS
    },
}


def advice(drift: Drift) -> list[str]:
    """Return sentences, the likeliest causes first; none where nothing drifted."""
    if not drift.drifted:
        return []
    lines = [*_versions(drift), *_overall(drift, CAUSES, "worse"), *_groups(drift)]
    lines += _overall(drift, CHANGES, "changed")
    outcomes = {change.direction for change in drift.drifted if change.measure.family == "outcome"}
    if "worse" in outcomes:
        if not lines:
            lines.append("Nothing that is recorded tells why: read some of the answers.")
        since = drift.window.period.start.strftime("%Y-%m-%dT%H:%MZ")
        lines.append(f"Look at the answers: lrp4rag review --since {since}")
    elif outcomes:
        lines.append("If it is meant to stay so, take this window as the next baseline.")
    return lines


def _versions(drift: Drift) -> Iterator[str]:
    for name in VERSIONS:
        before, after = (sorted(window.versions(name)) for window in (drift.baseline, drift.window))
        if before and after and before != after:
            lists = (
                ", ".join(one_line(version, NAME) for version in versions) for versions in (before, after)
            )
            what = "decisions" if name == "policy" else "scores"
            yield (
                f"The {name} changed ({' to '.join(lists)}): {what} before and after are not made by the "
                "same rules."
            )


def _overall(drift: Drift, causes: Mapping[str, str], direction: Direction) -> Iterator[str]:
    for name, words in causes.items():
        change = drift.of(name)
        if change is not None and change.direction == direction:
            yield words.format(_from_to(change), name=one_line(str(change.category), NAME))


def _groups(drift: Drift) -> Iterator[str]:
    """Yield topics with weaker retrieval, and topics and generators that got worse more than others."""
    weak = {change.group: change for change in _standing_out(drift, "topic", "retrieval score")}
    for change in weak.values():
        yield (
            f"Topic {_name(change)} may lack documents: the best that is retrieved for it went from a score "
            f"of {_from_to(change)}. Add what is asked for, or see what left the index."
        )
    measures = [measure.name for measure in MEASURES if measure.grouped and measure.family == "outcome"]
    for by in GROUPS:
        changes = [change for name in measures for change in _standing_out(drift, by, name)]
        worst = {change.group: change for change in sorted(changes, key=lambda change: change.size)}
        for change in sorted(worst.values(), key=lambda change: -change.size):
            if by == "generator":
                why = "its version, its prompt or its sampling may have changed"
            elif change.group in weak:
                why = "what is retrieved for it is weaker too"
            else:
                why = "what is retrieved scores as before, or is not recorded: its documents may be outdated"
            size = f"{change.measure.name} {_from_to(change)}"
            yield f"Answers of {by} {_name(change)} got worse ({size}), more than those of others: {why}."


def _standing_out(drift: Drift, by: str, measure: str) -> list[Change]:
    """Return the groups of which a measure got worse by more than that of all groups, the worst first; none
    where chance alone explains that groups differ. A drift of one topic shows in every generator that answers
    it, here more and there less: that is no drift of a generator."""
    changes = [
        change
        for change in drift.changes
        if change.measure.name == measure and change.group is not None and change.group.by == by
    ]
    if heterogeneity([change.difference for change in changes]) > drift.alpha:
        return []
    overall = drift.of(measure)
    least = 0.0 if overall is None else abs(overall.difference.value)
    worse = [
        change for change in changes if change.direction == "worse" and abs(change.difference.value) > least
    ]
    return sorted(worse, key=lambda change: -change.size)


def _name(change: Change) -> str:
    return "" if change.group is None else one_line(change.group.name, NAME)


def _from_to(change: Change) -> str:
    """Write both values, as 0.43 to 0.61."""
    before, after = change.difference.before, change.difference.after
    return f"{value_words(change.measure, before)} to {value_words(change.measure, after)}"
