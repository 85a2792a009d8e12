"""`RetrievalGate`: the choice, before there is an answer, of the passages that it may rest on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date
from typing import ClassVar

from lrp4rag.guard.checks.check import CheckInput, Detail, Finding, Need
from lrp4rag.guard.checks.gate.duplicates import Wordings, wording
from lrp4rag.guard.checks.gate.history import RequestedTime, requested_time
from lrp4rag.guard.checks.gate.passage import Passage, read_passage, successors
from lrp4rag.guard.checks.gate.validity import Period, zone_named
from lrp4rag.guard.checks.gate.versions import Edition, named_versions
from lrp4rag.util.errors import InputError
from lrp4rag.util.text import one_line

MANY = 5
"""The fewest passages of which one stands in the middle."""
_NAME = "retrieval"
_END = 2000
"""Characters at either end of a question that are read."""
_LONGEST = 40
"""Characters of a date, or of words of the question, that are shown."""


@dataclass(frozen=True, slots=True)
class GateResult:
    """The decision of the gate. Passages count from 0.

    * `kept`: the passages to use, in the order to use them: the best first where all have a score, else as
      they came. Without any, there is nothing to answer from.
    * `dropped`: every other passage and why: "empty", "expired", "not yet effective", "superseded", "below
      minimum" or "duplicate", the first that holds.
    * `asked_for`: the first day of the time that the question asks for, where that is not the present and the
      question says when.
    * `findings`: all of this, and further facts for a person, as a check reports it.
    """

    kept: tuple[int, ...]
    dropped: tuple[tuple[int, str], ...]
    asked_for: date | None
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class RetrievalGate:
    """Drops passages that no answer may rest on.

    * `minimum`: the lowest score that passes, from 0 to 1. It holds where all scores lie in that range.
    * `time_zone`: the time zone of dates that have none, by its IANA name ("Europe/Berlin"); without it, that
      of the input's `now`.

    Raises `InputError` for a minimum outside of its range and an unknown time zone.
    """

    name: ClassVar[str] = _NAME
    needs: ClassVar[frozenset[Need]] = frozenset()

    minimum: float = 0.6
    time_zone: str | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.minimum <= 1:
            raise InputError("give a number from 0 to 1", field="minimum")
        if self.time_zone is not None:
            try:
                zone_named(self.time_zone)
            except ValueError as error:
                raise InputError(str(error), field="time_zone") from error

    def __call__(self, inputs: CheckInput) -> list[Finding]:
        """Return the findings about all passages first, then in the order of the passages; "no minimum" says
        nothing of an answer and is left out. Raises `OverBudget`."""
        return [finding for finding in self.decide(inputs).findings if finding.kind != "no minimum"]

    def decide(self, inputs: CheckInput) -> GateResult:
        """Return which passages to keep, and in which order. Raises `OverBudget`."""
        zone = zone_named(self.time_zone) if self.time_zone is not None else inputs.now.tzinfo or UTC
        question = inputs.question
        if len(question) > 2 * _END:
            question = f"{question[:_END]}\n{question[-_END:]}"
        requested = requested_time(question, inputs.now, zone)
        passages = []
        for index, source in enumerate(inputs.sources):
            inputs.tick()
            passages.append(read_passage(index, source, zone))
        drops = [*_unfit(passages, requested, [*named_versions(question)], inputs)]
        drops += _below(self.minimum, _remaining(passages, drops), passages)
        drops += _duplicates(_remaining(passages, drops), inputs)
        remaining = _remaining(passages, drops)
        drops.sort(key=lambda finding: finding.passages[0])
        findings = [
            *_null(passages, drops),
            *_history(requested),
            *_scale(self.minimum, passages),
            *_middle(remaining),
            *_unreadable(passages),
            *drops,
        ]
        start = requested.period.start if requested is not None else None
        return GateResult(
            kept=tuple(passage.index for passage in _best_first(remaining)),
            dropped=tuple((finding.passages[0], finding.kind) for finding in drops),
            asked_for=start.date() if start is not None else None,
            findings=tuple(sorted(findings, key=lambda finding: finding.passages[:1])),
        )


def _remaining(passages: Sequence[Passage], drops: Iterable[Finding]) -> list[Passage]:
    """Return the passages that are not dropped."""
    dropped = {drop.passages[0] for drop in drops}
    return [passage for passage in passages if passage.index not in dropped]


def _unfit(
    passages: Sequence[Passage], requested: RequestedTime | None, named: Sequence[Edition], inputs: CheckInput
) -> Iterator[Finding]:
    """Yield passages without text, and passages that are not valid at the requested time, unless their
    version is `named`."""
    time = requested.period if requested is not None else Period(inputs.now, inputs.now)
    then = f"is not valid at the time asked for ({_quoted(requested.words)})" if requested is not None else ""
    successor_of = successors(passages, time.start, inputs) if time.start is not None else {}
    for passage in passages:
        inputs.tick()
        effective, expires = (
            one_line(text or "", _LONGEST) for text in (passage.source.effective, passage.source.expires)
        )
        if not passage.source.text.strip():
            yield _finding("empty", f"{passage.words} has no text.", passage)
        elif passage.edition is not None and passage.edition in named:
            continue
        elif passage.validity.period.is_before(time):
            words = f"{passage.words} {then or 'has expired'}: it was valid until {expires}."
            yield _finding("expired", words, passage, expires=expires)
        elif passage.validity.period.is_after(time):
            words = f"{passage.words} {then or 'is not valid yet'}: it is effective from {effective}."
            yield _finding("not yet effective", words, passage, effective=effective)
        elif (successor := successor_of.get(passage.index)) is not None:
            words = (
                f"{passage.words} is superseded by {successor.words}, a newer version of the same document."
            )
            yield _finding("superseded", words, passage, successor)


def _below(minimum: float, fit: Iterable[Passage], passages: Iterable[Passage]) -> Iterator[Finding]:
    if not _is_scaled(passages):
        return
    for passage in fit:
        if passage.score is not None and passage.score < minimum:
            words = f"{passage.words} scores {passage.score}, which is below the minimum of {minimum}."
            yield _finding("below minimum", words, passage, score=passage.score, minimum=minimum)


def _duplicates(fit: Sequence[Passage], inputs: CheckInput) -> Iterator[Finding]:
    """Yield all but the best scored of the passages that say the same."""
    wordings, unique = Wordings(), list[Passage]()
    for passage in sorted(fit, key=_rank):
        inputs.tick()
        passage_wording = wording(passage.source.text)
        number = wordings.like(passage_wording, inputs.tick)
        if number is None:
            wordings.add(passage_wording)
            unique.append(passage)
        else:
            words = f"{passage.words} says the same as {unique[number].words}, which is used in its place."
            yield _finding("duplicate", words, passage, unique[number])


def _null(passages: Sequence[Passage], drops: Sequence[Finding]) -> Iterator[Finding]:
    if not passages:
        yield _finding("null", "Insufficient evidence: no passage was retrieved.")
    elif len(drops) == len(passages):
        reasons = Counter(drop.kind for drop in drops).most_common()
        why = ", ".join(f"{number} {reason}" for reason, number in reasons)
        many = f"{len(passages)} passage{'s' * (len(passages) > 1)}"
        words = f"Insufficient evidence: of {many} none is fit to answer from ({why})."
        yield _finding("null", words, **dict(reasons))


def _history(requested: RequestedTime | None) -> Iterator[Finding]:
    if requested is None:
        return
    start = requested.period.start
    if start is None:
        words = (
            f"The question asks for what was earlier ({_quoted(requested.words)}) without a date: expired "
        )
        yield _finding("history", words + "and superseded passages are kept.", asked_for=None)
    else:
        words = (
            f"The question asks for another time ({_quoted(requested.words)}): passages valid then are kept."
        )
        yield _finding("history", words, asked_for=start.date().isoformat())


def _scale(minimum: float, passages: Sequence[Passage]) -> Iterator[Finding]:
    if minimum == 0 or _is_scaled(passages):
        return
    without = sum(passage.source.score is None for passage in passages)
    why = (
        f"{without} of {len(passages)} passages have no score"
        if without
        else "scores are not all from 0 to 1"
    )
    yield _finding("no minimum", f"No minimum score is applied: {why}.")


def _middle(remaining: Sequence[Passage]) -> Iterator[Finding]:
    """Yield the best passage where it stands in the middle, which readers overlook most, and no passage near
    either end is as good."""
    scores = [passage.score for passage in remaining if passage.score is not None]
    if not MANY <= len(scores) == len(remaining):
        return
    positions = [position for position, score in enumerate(scores) if score == max(scores)]
    edge = len(remaining) // 4
    if edge <= positions[0] and positions[-1] < len(remaining) - edge:
        best = remaining[positions[0]]
        words = (
            f"{best.words} has the best score and stands in the middle of {len(remaining)}, where a reader "
        )
        yield _finding("middle", words + "overlooks it most easily: put it first.", best)


def _unreadable(passages: Iterable[Passage]) -> Iterator[Finding]:
    for passage in passages:
        if fields := passage.validity.unreadable:
            dates = " and ".join(f"{_quoted(getattr(passage.source, name))} ({name})" for name in fields)
            words = (
                f"{passage.words} has a date that cannot be read: {dates}. Whether it is valid is not known; "
            )
            yield _finding("unreadable date", words + "write dates as 2024-06-30.", passage, fields=fields)


def _is_scaled(passages: Iterable[Passage]) -> bool:
    """Say whether all have a score from 0 to 1."""
    return all(passage.score is not None and 0 <= passage.score <= 1 for passage in passages)


def _best_first(remaining: list[Passage]) -> list[Passage]:
    have_scores = all(passage.score is not None for passage in remaining)
    return sorted(remaining, key=_rank) if have_scores else remaining


def _rank(passage: Passage) -> tuple[float, int]:
    """Return the key of a passage to sort by, the best first; passages without a score come last."""
    return (float("inf") if passage.score is None else -passage.score, passage.index)


def _quoted(text: str) -> str:
    return f"\u201c{one_line(text, _LONGEST)}\u201d"


def _finding(kind: str, words: str, *about: Passage, **details: Detail) -> Finding:
    passages = tuple(passage.index for passage in about)
    return Finding(_NAME, kind, words[:1].upper() + words[1:], passages=passages, details=details)
