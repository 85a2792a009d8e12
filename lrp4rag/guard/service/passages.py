"""Where a chat request has its passages: in our own field, in `documents`, or where a template says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from lrp4rag.data import PassageRow
from lrp4rag.guard.service.models import MOST_PASSAGES
from lrp4rag.guard.service.problems import Problem
from lrp4rag.source import NAMES
from lrp4rag.util.types import first_fault

TEXTS = ("text", "content", "page_content")
"""Under which of these names a document has its text; the first that is there."""
CONTEXT, QUESTION = "{context}", "{question}"


@dataclass(frozen=True, slots=True)
class Context:
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
        return re.split(r"(\{context\}|\{question\})", self.text.strip())

    def cut(self, content: str) -> Context | None:
        """What stands in the places of a message; None for one that was not written so.

        Raises a problem where it fits in several ways: whose words are whose is not guessed.
        """
        first, *middle, last = self._parts
        text, names = content.strip(), middle[::2]
        if not (text.startswith(first) and text.endswith(last) and len(text) >= len(first) + len(last)):
            return None
        inner = text[len(first) : len(text) - len(last)]
        values = inner.split(middle[1]) if len(names) > 1 else [inner]
        if len(values) > len(names):
            raise Problem(422, "Invalid request", "the template fits a message in several ways")
        if len(values) < len(names):
            return None
        cut = dict(zip(names, values, strict=True))
        passages = [part.strip() for part in cut[CONTEXT].split(self.separator) if part.strip()]
        if not passages:
            return None
        return Context([PassageRow(text=text) for text in passages], cut.get(QUESTION, "").strip() or None)


def passages_in(body: Mapping[str, Any], template: Template | None) -> Context | None:
    """The passages of a request that does not bring them in our field; None where there are none.

    Raises a problem for what is no document, and for too many.
    """
    context: Context | None = None
    if body.get("documents"):
        context = Context(_documents(body["documents"]))
    elif template is not None:
        messages = [one for one in reversed(body["messages"]) if isinstance(one, dict)]
        cuts = (template.cut(text_of(one)) for one in messages if one.get("role") != "assistant")
        context = next((cut for cut in cuts if cut is not None), None)
    if context is not None and len(context.passages) > MOST_PASSAGES:
        raise Problem(422, "Invalid request", f"there are more than {MOST_PASSAGES} passages")
    return context


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message, whose content may be a list of parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [str(part.get("text") or "") for part in parts if isinstance(part, dict)]
    return "\n".join(text for text in texts if text)


def _documents(documents: Any) -> list[PassageRow]:
    """Rows of texts, and of objects as many libraries have them."""
    if not isinstance(documents, list):
        raise Problem(422, "Invalid request", "documents are a list", field="documents")
    try:
        return [PassageRow(**_fields(document)) for document in documents]
    except ValidationError as error:
        message, below = first_fault(error)
        raise Problem(422, "Invalid request", message, field=f"documents.{below}") from None


def _fields(document: Any) -> dict[str, Any]:
    """A document without text is kept: the others are cited by their numbers."""
    if not isinstance(document, dict):
        return {"text": document}
    fields = {name: document[name] for name in (*NAMES, "score") if document.get(name) is not None}
    # An id that is a number is a name too.
    fields |= {name: str(value) for name, value in fields.items() if name != "score" and type(value) is int}
    texts = [document[name] for name in TEXTS if name in document]
    return fields | {"text": next(filter(None, texts), "" if texts else None)}
