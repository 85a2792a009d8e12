"""Where a chat request has its passages: in our own field, in `documents`, where a template says, or in the
results of tools."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from lrp4rag.data import PassageRow
from lrp4rag.guard.service.models import MOST_PASSAGES
from lrp4rag.guard.service.problems import Problem
from lrp4rag.util.strict_json import parse
from lrp4rag.util.types import first_fault

TEXTS = ("text", "content", "page_content", "snippet", "passage", "body")
"""Under which of these names a document has its text; the first that is there."""
LISTS = ("documents", "passages", "results", "items", "data")
"""Under which names the result of a tool has its documents."""
NAMES = ("id", "title", "version", "effective", "expires", "topic", "score")
CONTEXT, QUESTION = "{context}", "{question}"


@dataclass(frozen=True, slots=True)
class Found:
    """The passages, and the question where the same place tells it."""

    passages: list[PassageRow]
    question: str | None = None


@dataclass(frozen=True, slots=True)
class Template:
    """How an application writes its prompt: `text` with {context}, and {question} where it stands there too;
    `separator` stands between passages.

    Raises ValueError for a text from which they could not be cut out again.
    """

    text: str
    separator: str = "\n\n"

    def __post_init__(self) -> None:
        if self.text.count(CONTEXT) != 1 or self.text.count(QUESTION) > 1:
            raise ValueError(f"it holds {CONTEXT} once, and {QUESTION} at most once")
        if len(self._parts) > 3 and not self._parts[2].strip():
            raise ValueError(f"words must stand between {CONTEXT} and {QUESTION}")
        if not self.separator:
            raise ValueError("the separator is empty")

    @property
    def _parts(self) -> list[str]:
        """Literal, name, literal, … of the text, with its own ends stripped."""
        return re.split(f"({re.escape(CONTEXT)}|{re.escape(QUESTION)})", self.text.strip())

    def cut(self, content: str) -> Found | None:
        """What stands in the places of a message; None for one that was not written so.

        Raises a problem where it fits in several ways: whose words are whose is not guessed.
        """
        first, *middle, last = self._parts
        text = content.strip()
        if not (text.startswith(first) and text.endswith(last) and len(text) >= len(first) + len(last)):
            return None
        inner = text[len(first) : len(text) - len(last)]
        if len(middle) == 1:
            values = {middle[0]: inner}
        else:
            name, literal, other = middle
            if (count := inner.count(literal)) != 1:
                if count:
                    raise Problem(422, "Invalid request", "the template fits a message in several ways")
                return None
            before, _, after = inner.partition(literal)
            values = {name: before, other: after}
        passages = [part.strip() for part in values[CONTEXT].split(self.separator) if part.strip()]
        if not passages:
            return None
        return Found([PassageRow(text=one) for one in passages], values.get(QUESTION, "").strip() or None)


def passages_in(body: Mapping[str, Any], template: Template | None) -> Found | None:
    """Return the passages of a request that does not bring them in our field; None where there are none.

    Raises a problem for what is no document, and for too many.
    """
    found: Found | None = None
    if body.get("documents"):
        found = Found(_documents(body["documents"], "documents"))
    messages = [one for one in body["messages"] if isinstance(one, dict)]
    if found is None and template is not None:
        cut = (template.cut(text_of(one)) for one in reversed(messages) if one.get("role") != "assistant")
        found = next((one for one in cut if one is not None), None)
    if found is None:
        found = Found([row for one in _tools(messages) for row in _result(text_of(one))])
    if len(found.passages) > MOST_PASSAGES:
        raise Problem(422, "Invalid request", f"there are more than {MOST_PASSAGES} passages")
    return found if found.passages else None


def text_of(message: Mapping[str, Any]) -> str:
    """Return the text of a message, whose content may be a list of parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [str(one.get("text") or "") for one in parts if isinstance(one, dict)]
    return "\n".join(text for text in texts if text)


def _tools(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Results of tools since the user spoke last: what was looked up for an earlier question is not meant."""
    roles = [one.get("role") for one in messages]
    since = max((k for k, role in enumerate(roles) if role == "user"), default=0)
    return [one for one in messages[since:] if one.get("role") in ("tool", "function")]


def _result(text: str) -> Iterator[PassageRow]:
    """Documents, where the result of a tool is JSON that holds some, or else all of it."""
    try:
        given = parse(text)
    except (ValueError, RecursionError):
        given = None
    if isinstance(given, dict):
        given = next((given[name] for name in LISTS if isinstance(given.get(name), list)), [given])
    if isinstance(given, list) and given:
        try:
            rows = _documents(given, "messages")
        except Problem:
            rows = []  # JSON of another form is a text like any other
        if any(row.text.strip() for row in rows):
            yield from rows
            return
    if text.strip():
        yield PassageRow(text=text)


def _documents(given: Any, field: str) -> list[PassageRow]:
    if not isinstance(given, list):
        raise Problem(422, "Invalid request", "documents are a list", field=field)
    rows = []
    for one in given:
        try:
            rows.append(PassageRow(**_fields(one)))
        except ValidationError as error:
            message, below = first_fault(error)
            raise Problem(422, "Invalid request", message, field=f"{field}.{below}") from None
    return rows


def _fields(given: Any) -> dict[str, Any]:
    """Of a document that is a text, or an object as many libraries have it."""
    if isinstance(given, str):
        return {"text": given}
    known: dict[str, Any] = dict(given) if isinstance(given, dict) else {}
    below = known.get("data")
    if isinstance(below, dict):
        known.update(below)
    found = {name: known[name] for name in NAMES if known.get(name) is not None}
    # An id that is a number is a name too.
    found = {name: str(x) if type(x) is int and name != "score" else x for name, x in found.items()}
    # One without text is kept: the others are cited by their numbers.
    named = [known[name] for name in TEXTS if name in known]
    return found | {"text": next(filter(None, named), "" if named else None)}
