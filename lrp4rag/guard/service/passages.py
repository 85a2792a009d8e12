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
"""The names under which a document may have its text; the first that it has counts."""
LISTS = ("documents", "passages", "results", "items", "data")
"""The names under which the result of a tool may have its documents."""
NAMES = ("id", "title", "version", "effective", "expires", "topic", "score")
CONTEXT, QUESTION = "{context}", "{question}"


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The passages of a request, and the question where it stands beside them."""

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
        """The literals of the text, and the names between them; the ends of the text are stripped."""
        return re.split(f"({re.escape(CONTEXT)}|{re.escape(QUESTION)})", self.text.strip())

    def cut(self, content: str) -> Retrieved | None:
        """Cut passages and question out of a message; return None for one that was not written so.

        Raises a problem where the template fits in several ways: which words are whose is not guessed.
        """
        first, *middle, last = self._parts
        text = content.strip()
        if not (text.startswith(first) and text.endswith(last) and len(text) >= len(first) + len(last)):
            return None
        inner = text[len(first) : len(text) - len(last)]
        if len(middle) == 1:
            values = {middle[0]: inner}
        else:
            left, literal, right = middle
            if (count := inner.count(literal)) != 1:
                if count:
                    raise Problem(422, "Invalid request", "the template fits a message in several ways")
                return None
            before, _, after = inner.partition(literal)
            values = {left: before, right: after}
        passages = [passage.strip() for passage in values[CONTEXT].split(self.separator) if passage.strip()]
        if not passages:
            return None
        rows = [PassageRow(text=passage) for passage in passages]
        return Retrieved(rows, values.get(QUESTION, "").strip() or None)


def passages_in(body: Mapping[str, Any], template: Template | None) -> Retrieved | None:
    """Return the passages of a request that does not bring them in our field; None where there are none.

    Raises a problem for anything but documents, and for too many.
    """
    retrieved: Retrieved | None = None
    if body.get("documents"):
        retrieved = Retrieved(_documents(body["documents"], "documents"))
    messages = [message for message in body["messages"] if isinstance(message, dict)]
    if retrieved is None and template is not None:
        for message in reversed(messages):
            if message.get("role") != "assistant" and (retrieved := template.cut(text_of(message))):
                break
    if retrieved is None:
        rows = [row for message in _tools(messages) for row in _result(text_of(message))]
        retrieved = Retrieved(rows)
    if len(retrieved.passages) > MOST_PASSAGES:
        raise Problem(422, "Invalid request", f"there are more than {MOST_PASSAGES} passages")
    return retrieved if retrieved.passages else None


def text_of(message: Mapping[str, Any]) -> str:
    """Return the text of a message, whose content may be a list of parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [str(part.get("text") or "") for part in parts if isinstance(part, dict)]
    return "\n".join(text for text in texts if text)


def _tools(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the results of tools since the user spoke last: earlier ones were looked up for an earlier
    question."""
    roles = [message.get("role") for message in messages]
    since = max((k for k, role in enumerate(roles) if role == "user"), default=0)
    return [message for message in messages[since:] if message.get("role") in ("tool", "function")]


def _result(text: str) -> Iterator[PassageRow]:
    """Yield the documents of a tool's result, where it is JSON that holds some, or else all of its text."""
    try:
        content = parse(text)
    except (ValueError, RecursionError):
        content = None
    if isinstance(content, dict):
        content = next((content[name] for name in LISTS if isinstance(content.get(name), list)), [content])
    if isinstance(content, list) and content:
        try:
            rows = _documents(content, "messages")
        except Problem:
            rows = []  # JSON of another form is a text like any other
        if any(row.text.strip() for row in rows):
            yield from rows
            return
    if text.strip():
        yield PassageRow(text=text)


def _documents(documents: Any, field: str) -> list[PassageRow]:
    if not isinstance(documents, list):
        raise Problem(422, "Invalid request", "documents are a list", field=field)
    rows = []
    for document in documents:
        try:
            rows.append(PassageRow(**_fields(document)))
        except ValidationError as error:
            message, below = first_fault(error)
            raise Problem(422, "Invalid request", message, field=f"{field}.{below}") from None
    return rows


def _fields(document: Any) -> dict[str, Any]:
    """Return the fields of a document that is a text, or an object as many libraries have it."""
    if isinstance(document, str):
        return {"text": document}
    fields: dict[str, Any] = dict(document) if isinstance(document, dict) else {}
    nested = fields.get("data")
    if isinstance(nested, dict):
        fields.update(nested)
    row = {name: fields[name] for name in NAMES if fields.get(name) is not None}
    # An id that is a number is a name too.
    row = {name: str(x) if type(x) is int and name != "score" else x for name, x in row.items()}
    # A document without text is kept: the others are cited by their numbers.
    named = [fields[name] for name in TEXTS if name in fields]
    return row | {"text": next(filter(None, named), "" if named else None)}
