"""What to do next: which topics lack documents, which generator changed, what else did."""

from __future__ import annotations

from collections.abc import Iterator

from lrp4rag.guard.monitoring.drift import Change, Drift, Group, Said
from lrp4rag.guard.monitoring.measures import GROUPS, MEASURES
from lrp4rag.guard.monitoring.tests import heterogeneity
from lrp4rag.guard.monitoring.windows import VERSIONS
from lrp4rag.guard.monitoring.words import NAME, from_to
from lrp4rag.util.text import one_line

_RETRIEVAL = ("retrieval score", "score at the gate", "nothing retrieved")


def advice(drift: Drift) -> list[str]:
    """Sentences, the likeliest causes first; none where nothing drifted."""
    if not drift.found:
        return []
    lines = [*_versions(drift), *_unjudged(drift), *_reasons(drift), *_retrieval(drift)]
    lines += [*_groups(drift), *_sizes(drift), *_mix(drift)]
    outcomes = {one.said for one in drift.found if one.measure.family == "outcome"}
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
        before, after = (set(one.versions(name)) for one in (drift.baseline, drift.window))
        if before and after and before != after:
            told = " to ".join(", ".join(one_line(x, NAME) for x in sorted(one)) for one in (before, after))
            what = "decisions" if name == "policy" else "scores"
            yield f"The {name} changed ({told}): {what} before and after are not made by the same rules."


def _unjudged(drift: Drift) -> Iterator[str]:
    if (one := _drifted(drift, "unavailable", "worse")) is not None:
        yield (
            f"More answers could not be judged ({from_to(one)}): look for deadlines and refusals in the "
            "server's log and its /metrics, and at the upstream."
        )
    if (one := _drifted(drift, "abstained", "worse")) is not None:
        yield (
            f"More answers are unlike what the detector learned from ({from_to(one)}): look for another "
            "language, format or length."
        )


REASONS = {
    "knowledge gap": "More questions find no passage that is fit to answer from ({}): look at the index, at "
    "what expired, and at the gate's minimum.",
    "contradicted": "More answers have values that a passage has otherwise ({}): see whether the generator "
    "or its prompt changed, or whether older versions of documents are retrieved beside newer ones.",
    "unsupported": "More answers say what no passage says ({}): see whether the generator or its prompt "
    "changed, or whether what is retrieved got weaker.",
}


def _reasons(drift: Drift) -> Iterator[str]:
    for name, words in REASONS.items():
        if (one := _drifted(drift, name, "worse")) is not None:
            yield words.format(from_to(one))


def _retrieval(drift: Drift) -> Iterator[str]:
    weaker = [one for one in drift.found if one.measure.name in _RETRIEVAL and one.said == "worse"]
    topics = _standing_out(drift, "topic", "retrieval score")
    for one in topics:
        yield (
            f"Topic {_name(one)} may lack documents: the best that is retrieved for it went from a score of "
            f"{from_to(one)}. Add what is asked for, or see what left the index."
        )
    if weaker and not topics:
        told = "; ".join(f"{one.measure.name} {from_to(one)}" for one in weaker if one.group is None)
        yield f"Retrieval is weaker ({told or 'in some groups'}): look at the index and its embedder."


def _groups(drift: Drift) -> Iterator[str]:
    """Topics and generators whose answers got worse more than those of others."""
    weak = {one.group for one in _standing_out(drift, "topic", "retrieval score")}
    for by in GROUPS:
        worst: dict[Group, Change] = {}
        for measure in (one.name for one in MEASURES if one.grouped and one.family == "outcome"):
            for one in _standing_out(drift, by, measure):
                assert one.group is not None
                if one.group not in worst or one.size > worst[one.group].size:
                    worst[one.group] = one
        for one in sorted(worst.values(), key=lambda one: -one.size):
            if by == "generator":
                why = "its version, its prompt or its sampling may have changed"
            elif one.group in weak:
                why = "what is retrieved for it is weaker too"
            else:
                why = "what is retrieved scores as before, or is not recorded: its documents may be outdated"
            told = f"{one.measure.name} {from_to(one)}"
            yield f"Answers of {by} {_name(one)} got worse ({told}), more than those of others: {why}."


def _standing_out(drift: Drift, by: str, measure: str) -> list[Change]:
    """The groups of which a measure got worse by more than that of all groups, the worst first; none where
    chance alone explains that groups differ. A drift of one topic shows in every generator that answers it,
    here more and there less: that is no drift of a generator."""
    compared = [
        one
        for one in drift.changes
        if one.measure.name == measure and one.group is not None and one.group.by == by
    ]
    if heterogeneity([one.difference for one in compared]) > drift.alpha:
        return []
    whole = drift.of(measure)
    beyond = [
        one
        for one in compared
        if one.said == "worse" and (whole is None or abs(one.difference.value) > abs(whole.difference.value))
    ]
    return sorted(beyond, key=lambda one: -one.size)


def _name(change: Change) -> str:
    return "" if change.group is None else one_line(change.group.name, NAME)


def _sizes(drift: Drift) -> Iterator[str]:
    for name in ("length", "passages"):
        if (one := _drifted(drift, name, "changed")) is not None:
            if name == "passages":
                yield f"Answers rest on another number of passages ({from_to(one)}): retrieval changed."
                continue
            way = "longer" if one.difference.value > 0 else "shorter"
            yield (
                f"Answers are {way} ({from_to(one)} characters): the generator or its prompt changed. The "
                "longer an answer, the likelier it has something that is hallucinated."
            )


def _mix(drift: Drift) -> Iterator[str]:
    for by in GROUPS:
        if (one := _drifted(drift, f"{by}s", "changed")) is not None:
            yield (
                f"Other {by}s are asked for or used: {one_line(str(one.category), NAME)} went from "
                f"{from_to(one)} of the answers. What changed overall may be that; compare within {by}s."
            )


def _drifted(drift: Drift, measure: str, said: Said) -> Change | None:
    one = drift.of(measure)
    return one if one is not None and one.said == said else None
