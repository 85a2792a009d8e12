"""`facts_of` an answer: the claims that it makes, and `stated`, the sentences that make some."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lrp4rag.claims import Value, find_values
from lrp4rag.claims.clauses import Clause, Span, clauses
from lrp4rag.claims.stating import is_heading, states_nothing, without_marker
from lrp4rag.claims.surroundings import Surroundings
from lrp4rag.claims.value import NUMERIC
from lrp4rag.util.sentences import sentences_in
from lrp4rag.util.text import blanked, encodable

_NUMBERED = re.compile(
    r"(?:passage|section|article|chapter|step|page|figure|table|form|paragraph|no\.|number|version) ?\Z",
    re.IGNORECASE,
)
_CITED = re.compile(r"\[(?=[^\[\]\n]{0,80}\d)[^\[\]\n]{1,80}\]")
"""A citation in brackets: [2], [DEP-4], [Handbook, 4.2]."""
_RULER = re.compile(r"\|?[\s|:-]*-[\s|:-]*")


@dataclass(frozen=True, slots=True)
class Fact:
    """One claim of a response, in its sentence number `sentence` (from 0, of `sentences_in`).

    Characters `start` to `end` (exclusive) tell it from the other claims, and read `text`. `stretches` are
    all that it is made of: these, and before them the subject, where it stands apart from them.
    """

    sentence: int
    start: int
    end: int
    text: str
    stretches: tuple[Span, ...]


def facts_of(response: str, tick: Callable[[], None] = lambda: None) -> list[Fact]:
    """Return the claims of a response, in its order; a sentence that states nothing has none. `tick` is
    called in every loop, and may raise."""
    text = encodable(response)
    sentences = sentences_in(text)
    text = blanked(text, _CITED)  # is no part of what is stated
    around, found = Surroundings(text), list[Fact]()
    for number, (start, end) in enumerate(sentences):
        tick()
        after = sentences[number + 1] if number + 1 < len(sentences) else None
        line = after is not None and "\n" in text[end : after[0]]
        ruled = line and after is not None and _is_ruler(text[after[0] : after[1]])
        if not ruled:
            sentence, alone = text[start:end], len(sentences) == 1
            values = find_values(sentence, around)
            for clause in _claims(sentence, values, followed=line, alone=alone, tick=tick):
                found.append(_fact(response, number, start, clause))
    return found


def stated(response: str, tick: Callable[[], None] = lambda: None) -> list[Span]:
    """(start, end) of the sentences that state something: those that have a fact."""
    sentences = sentences_in(encodable(response))
    return [sentences[number] for number in sorted({fact.sentence for fact in facts_of(response, tick)})]


def _fact(response: str, number: int, offset: int, clause: Clause) -> Fact:
    start, end = offset + clause.start, offset + clause.end
    if response[start:end].count("(") > response[start:end].count(")") and response[end : end + 1] == ")":
        end += 1
    head = [] if clause.head is None else [(offset + clause.head[0], offset + clause.head[1])]
    return Fact(number, start, end, response[start:end], (*head, (start, end)))


def _claims(
    text: str, values: Sequence[Value], *, followed: bool, alone: bool, tick: Callable[[], None]
) -> Iterator[Clause]:
    begin = 0 if alone else without_marker(text)
    body, values = text[begin:], _inside(values, begin, len(text))
    if states_nothing(body, values):
        return
    if is_heading(text, values, followed=followed and not begin):
        return
    absent, last = False, 0
    for part in _rows(body) if body.startswith("|") else clauses(body, _amounts(body, values), tick):
        inside = _inside(values, part.start, part.end)
        # What passages do not tell goes on to where the sentence turns to something else.
        absent = absent and "but" not in body[last : part.start].lower().split()
        absent = absent or any(value.kind == "absence" for value in inside)
        last = part.end
        if not absent and not states_nothing(body[part.start : part.end], inside):
            head = None if part.head is None else (part.head[0] + begin, part.head[1] + begin)
            yield Clause(part.start + begin, part.end + begin, head)


def _inside(values: Sequence[Value], start: int, end: int) -> list[Value]:
    return [value.shifted(-start) for value in values if start <= value.start and value.end <= end]


def _amounts(text: str, values: Sequence[Value]) -> list[Value]:
    """Those that say how much or when: not the number of a section."""
    return [
        value
        for value in values
        if value.kind in NUMERIC and not _NUMBERED.search(text[max(value.start - 10, 0) : value.start])
    ]


def _rows(text: str) -> Iterator[Clause]:
    """Yield the cells of a row of a table, each said of the first one."""
    cells = [match.span() for match in re.finditer(r"[^\s|](?:[^|\n]*[^\s|])?", text)]
    if len(cells) == 1:
        yield Clause(*cells[0])
    for cell in cells[1:]:
        yield Clause(*cell, head=cells[0])


def _is_ruler(text: str) -> bool:
    """Say whether it is the line under the head of a table."""
    return "|" in text and _RULER.fullmatch(text) is not None
