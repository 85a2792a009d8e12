"""A passage with its dates and version read, and which of two replaces the other."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from packaging.version import Version

from lrp4rag.guard.checks.check import CheckInput
from lrp4rag.guard.checks.gate.validity import Validity, validity_of
from lrp4rag.guard.checks.gate.versions import Edition, edition_of, without_version
from lrp4rag.source import Source
from lrp4rag.util.text import one_line

_Document = tuple[str, str]
"""The kind of a document's name, and the name."""
_Order = Callable[["Passage"], tuple[Version, datetime]]
_LOWEST = Version("0")
_FIRST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, eq=False)
class Passage:
    """A passage with its dates and version read; `documents` are names of its document, equal for all
    versions of it."""

    index: int
    source: Source
    validity: Validity
    edition: Edition | None
    documents: frozenset[_Document]

    @property
    def words(self) -> str:
        """Return the passage's name for a person: "passage 2 (HR Policy, version 2.8)"."""
        name = self.source.title or self.source.id or ""
        version = f"version {one_line(self.source.version, 20)}" if self.source.version else ""
        label = ", ".join(text for text in (one_line(name, 40), version) if text)
        return f"passage {self.index + 1}" + (f" ({label})" if label else "")

    @property
    def score(self) -> float | None:
        """Return the score; None also for a score that is no finite number."""
        score = self.source.score
        return score if score is not None and math.isfinite(score) else None

    def replaces(self, other: Passage) -> bool:
        """Say whether it is newer, if both are of one document: by their versions, or where these are equal,
        missing or of two kinds, by the dates from which they are effective."""
        edition, rival = self.edition, other.edition
        if edition is not None and rival is not None and (edition.is_newer(rival) or rival.is_newer(edition)):
            return edition.is_newer(rival)
        start, earlier = self.validity.period.start, other.validity.period.start
        return start is not None and earlier is not None and start > earlier


def read_passage(index: int, source: Source, zone: tzinfo) -> Passage:
    """Read the dates and the version of a passage. Dates without a time zone are of `zone`."""
    documents = frozenset(_documents(source))
    return Passage(index, source, validity_of(source, zone), edition_of(source), documents)


def successors(passages: Sequence[Passage], moment: datetime, inputs: CheckInput) -> dict[int, Passage]:
    """Return by the index of a passage the passage of the same document that has replaced it by a moment. A
    draft and a passage with a date that cannot be read replace nothing. Raises `OverBudget`."""
    newest: defaultdict[_Document, dict[tuple[str, _Order], Passage]] = defaultdict(dict)
    for passage in passages:
        inputs.tick()
        edition, validity = passage.edition, passage.validity
        is_draft = edition is not None and edition.is_draft
        if validity.period.has(moment) and not validity.unreadable and not is_draft:
            # Whatever a passage of a scheme replaces, the last by version or by date replaces too.
            scheme = edition.scheme if edition is not None else ""
            for name in passage.documents:
                for order in (_by_version, _by_date):
                    last = newest[name].setdefault((scheme, order), passage)
                    if order(passage) > order(last):
                        newest[name][scheme, order] = passage
    return {
        passage.index: successor
        for passage in passages
        if (
            successor := _successor(
                passage, (candidate for name in passage.documents for candidate in newest[name].values())
            )
        )
    }


def _successor(passage: Passage, candidates: Iterable[Passage]) -> Passage | None:
    newest: Passage | None = None
    for candidate in candidates:
        if candidate.replaces(passage) and (newest is None or candidate.replaces(newest)):
            newest = candidate
    return newest


def _by_date(passage: Passage) -> tuple[Version, datetime]:
    return _LOWEST, passage.validity.period.start or _FIRST


def _by_version(passage: Passage) -> tuple[Version, datetime]:
    number = passage.edition.number if passage.edition is not None else _LOWEST
    return number, passage.validity.period.start or _FIRST


def _documents(source: Source) -> Iterable[_Document]:
    title = without_version(source.title or "", source.version)
    if title:
        yield "title", title
    document = (source.id or "").partition("#")[0]  # the rest names a part of it
    if document.strip():
        yield "id", document.strip().casefold()
    # "doc-1" and "doc-2" are two documents where their titles are.
    if not title and (name := without_version(document, source.version)):
        yield "id without version", name
