"""`Evidence`: a clause or a cell of a passage, what it is said of, and its values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lrp4rag.claims.claim import names_in
from lrp4rag.claims.find import find_values
from lrp4rag.claims.places import Place, stems_of
from lrp4rag.claims.value import Value

_RULE = re.compile(r"[\s|:+=-]+")
_ITEM = re.compile(r"\s*(?:[-*\u2022]|\d{1,3}[.)])\s")
_CELL = re.compile(r"[^|\t]+")
_BEGINNING = 160
"""Characters of a passage in whose first name it is about, where no heading has one."""


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Characters `start` to `end` of passage `passage` (counted from 0), that `text`.

    `place` is the number of its sentence over all passages. `values` have the passage's offsets. `stems` are
    those of its words, and `lead` those of what it continues: the heading, the sentence that it points back
    to, or the heads of a cell's row and column. `subject` are the names that it is said of: its own names, or
    those of its row, of its lead, or of its passage's title or beginning; `about` are the names of the title
    or beginning.
    """

    passage: int
    start: int
    end: int
    text: str
    place: int
    values: tuple[Value, ...]
    stems: frozenset[str]
    lead: frozenset[str]
    subject: tuple[Value, ...]
    about: tuple[Value, ...]


def evidence_of(places: Iterable[Place]) -> Iterator[Evidence]:
    """Yield the clauses of the sentences of passages, and of their tables the cells, in their order."""
    passage, header = -1, list[str]()
    about: tuple[Value, ...] = ()
    latest: tuple[Value, ...] = ()
    heading: Place | None = None
    for number, place in enumerate(places):
        if place.passage != passage:
            passage, about, header, latest, heading = place.passage, (), [], (), None
        names = names_in(place.own_values)
        if not about and (place.is_heading or place.start < _BEGINNING):
            about = names[:1]
        cells = _cells(place.text)
        if len(cells) > 1:
            if not header:
                header = [place.text[start:end] for start, end in cells]
            elif not _RULE.fullmatch(place.text):
                yield from _of_row(place, number, cells, header, about)
            continue
        header = []
        if place.is_heading and not _ITEM.match(place.text):
            heading = place
        lead = names_in(heading.own_values) if heading else ()
        leading = place.lead_stems | (heading.stems if heading else frozenset())
        inherited = (latest if place.points_back else ()) or lead or about
        for start, end, values, tokens in place.parts:
            clause_names = names_in(values)
            stems = frozenset(token.stem for token in tokens) | _stems_of_names(values)
            yield Evidence(
                passage,
                place.start + start,
                place.start + end,
                place.text[start:end],
                number,
                tuple(value.shifted(place.start) for value in values),
                stems,
                leading,
                clause_names or inherited,
                about,
            )
            inherited = clause_names[:1] or inherited
        latest = names or latest


def _of_row(
    place: Place,
    number: int,
    cells: Sequence[tuple[int, int]],
    header: Sequence[str],
    about: tuple[Value, ...],
) -> Iterator[Evidence]:
    """Yield the cells of a row after the first, each with the row's head."""
    head = place.text[slice(*cells[0])]
    names = names_in(find_values(head, place.around))
    for column, (start, end) in enumerate(cells[1:], 1):
        title = header[column] if column < len(header) else ""
        inside = [value for value in place.values if start <= value.start - place.start < end]
        named = [value for value in place.values if value.start - place.start < cells[0][1]]
        lead = stems_of(f"{head} {title}")
        stems = stems_of(place.text[start:end])
        yield Evidence(
            place.passage,
            place.start + start,
            place.start + end,
            place.text[start:end],
            number,
            (*named, *inside),
            stems | lead,
            place.lead_stems,
            names or about,
            about,
        )


def _cells(line: str) -> list[tuple[int, int]]:
    """Return where the cells of a row of a table are, without the white space around them; none of prose."""
    if line.count("|") < 2 and "\t" not in line and " | " not in line:
        return []
    cells = []
    for match in _CELL.finditer(line):
        text = match[0].strip()
        if text:
            start = match.start() + match[0].index(text)
            cells.append((start, start + len(text)))
    return cells


def _stems_of_names(values: Sequence[Value]) -> frozenset[str]:
    """Return the stems of the words of names, by which they are known in other cases too."""
    return frozenset().union(*(stems_of(value.text) for value in values if value.kind == "name"))
