"""`Example`: a question, its retrieved passages, the prompt that holds them, and a response."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, InitVar, dataclass, fields, replace
from itertools import pairwise
from numbers import Real
from typing import Any, Literal, Self, TypeVar

from lrp4rag.source import Source
from lrp4rag.util.errors import InputError
from lrp4rag.util.hashes import json_hash
from lrp4rag.util.text import exact, surrogate_in
from lrp4rag.util.types import require_whole

# The wording of RAGTruth's question-answering prompts, so that what users render looks like what
# the bundled detector was trained on.
DEFAULT_TEMPLATE = (
    "Briefly answer the following question:\n{question}\n"
    "Bear in mind that your response should be strictly based on the following passages:\n"
    "{context}\n\n"
    "In case the passages do not contain the necessary information to answer the question, "
    'please reply with: "Unable to answer based on given passages."\noutput:'
)

LONGEST_EXAMPLE = 10_000_000
"""Characters of all texts of an example together: many times what any reader's window holds."""
LONGEST_NAME = 1000
"""Characters of an id, a source, a generator's name or a label's kind."""

SegmentKind = Literal["passage", "question"]


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end` (exclusive) of the prompt that hold the question or passage `index`."""

    kind: SegmentKind
    index: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Label:
    """A hallucinated span: characters `start` to `end` (exclusive) of the response."""

    start: int
    end: int
    kind: str = ""
    implicit_true: bool = False


@dataclass(frozen=True, slots=True)
class Example:
    """A question, its retrieved passages, the prompt that holds them, and the response that is judged.

    The prompt is rendered from `template` (by default RAGTruth's wording) where none is given, and question
    and passages are located in a given one; `spans` says where they stand, and needs to be given only where
    the same text stands in several places. `labels` is None when nobody annotated the response, and empty
    when it was found faithful. `source` groups the examples that share a question and passages
    (cross-validation never splits a group); it defaults to their hash. `generator` names the model that wrote
    the response. A passage may be given as a `Source`, or an object with its fields; `sources` are all of
    them, and `passages` what is read of them; given `sources` tell what is known of the passages that they
    have.

    A passage without text is left out of the prompt, and the others keep their numbers.

    Raises `InputError` naming the argument for what is no text, passages that are all empty, an empty
    response, an empty question where the prompt is rendered, a label outside the response, a template without
    its two placeholders, a part that the prompt lacks, text with half a character in it, or more text than
    `LONGEST_EXAMPLE`.
    """

    question: str
    passages: Sequence[str]
    response: str | None = None
    _: KW_ONLY
    sources: tuple[Source, ...] = ()
    prompt: str = ""
    spans: tuple[Span, ...] = ()
    labels: tuple[Label, ...] | None = None
    id: str = "example"
    source: str = ""
    generator: str | None = None
    template: InitVar[str | None] = None

    def __post_init__(self, template: str | None) -> None:
        for name in ("question", "response", "prompt", "id", "source", "generator"):
            if isinstance(text := getattr(self, name), str):
                self._set(**{name: exact(text)})
        passages: object = self.passages
        if isinstance(passages, str | bytes) or not isinstance(passages, Sequence):
            raise InputError("give a list of texts, one for each passage", field="passages")
        entries = tuple(_passage(entry, f"passages[{k}]") for k, entry in enumerate(passages))
        self._set(passages=tuple(entry.read if isinstance(entry, Source) else entry for entry in entries))
        sources = {entry.read: entry for entry in (*self.sources, *entries) if isinstance(entry, Source)}
        self._set(sources=tuple(sources.get(text) or Source(text) for text in self.passages))
        self._set(passages=tuple(source.read for source in self.sources))
        if self.labels is not None:
            self._set(labels=_exact_all(self.labels, Label, "labels"))
        self._set(spans=_exact_all(self.spans, Span, "spans"))
        _require_scores(self.sources)
        self._require(template)
        if not self.source:
            self._set(source=self.content_hash)
        if not self.prompt:
            wording = DEFAULT_TEMPLATE if template is None else template
            prompt, spans = render(wording, self.question, self.passages)
            self._set(prompt=prompt, spans=spans)
        elif not self.spans:
            self._set(spans=locate(self.prompt, self.question, self.passages))
        else:
            _require_places(self.spans, len(self.prompt), len(self.passages))

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _require(self, template: str | None) -> None:
        texts = {"question": self.question, "prompt": self.prompt}
        texts |= {f"passages[{k}]": passage for k, passage in enumerate(self.passages)}
        optional = {"response": self.response, "template": template, "generator": self.generator}
        names = {"id": self.id, "source": self.source}
        names |= _names_of(self.sources)
        names |= {f"labels[{k}].kind": label.kind for k, label in enumerate(self.labels or ())}
        present = {field: text for field, text in optional.items() if text is not None}
        for field, text in {**texts, **present, **names}.items():
            if not isinstance(text, str):
                raise InputError(f"a text is needed, not {type(text).__name__}", field=field)
        if "generator" in present:
            names["generator"] = present.pop("generator")
        _require_texts({**texts, **present}, names)
        if not self.passages:
            raise InputError("at least one passage is needed", field="passages")
        if not self.prompt and not self.question.strip():
            raise InputError(
                "the question is empty; only a given prompt can do without one", field="question"
            )
        if len(self.empty) == len(self.passages):
            few = len(self.passages) == 1
            message, field = ("the passage is", "passages[0]") if few else ("all passages are", "passages")
            raise InputError(f"{message} empty", field=field)
        if self.response is not None and not self.response.strip():
            raise InputError("the response is empty", field="response")
        if self.labels is not None and self.response is None:
            raise InputError("labels need a response", field="labels")
        length = len(self.response or "")
        for k, label in enumerate(self.labels or ()):
            if not 0 <= label.start < label.end <= length:
                raise InputError(
                    f"span {label.start}..{label.end} lies outside the response, "
                    f"which has {length} characters",
                    field=f"labels[{k}]",
                )

    @classmethod
    def of_sources(
        cls, question: str, sources: Iterable[Source], response: str | None = None, **more: Any
    ) -> Self:
        """Return an example whose passages are sources. Raises `InputError` as the class does."""
        known = tuple(sources)
        return cls(question, [source.read for source in known], response, sources=known, **more)

    @property
    def empty(self) -> tuple[int, ...]:
        """Indices of the passages without text, which the prompt leaves out."""
        return tuple(k for k, passage in enumerate(self.passages) if not passage.strip())

    @property
    def hallucinated(self) -> bool | None:
        """True when an annotator marked at least one span; None when there are no annotations."""
        return None if self.labels is None else bool(self.labels)

    @property
    def content_hash(self) -> str:
        """The hash of question and passages, whatever the template, file or id they came with."""
        return content_hash(self.question, self.passages)

    def with_response(self, response: str) -> Example:
        """Return the example with another, unlabelled response."""
        return replace(self, response=response, labels=None)


def _passage(value: object, field: str) -> str | Source:
    """Make a `Source` of an object with a text; a text stays."""
    if isinstance(value, str | Source):
        return value
    if not isinstance(value, Mapping):
        raise InputError(f"a text is needed, not {type(value).__name__}", field=field)
    names = {each.name for each in fields(Source)}
    if unknown := [name for name in value if name not in names]:
        raise InputError(
            f"a passage has no field {unknown[0]!r}; it has {', '.join(sorted(names))}", field=field
        )
    if "text" not in value:
        raise InputError("a passage needs a text", field=f"{field}.text")
    return Source(**value)


def _require_scores(sources: Sequence[Source]) -> None:
    for k, source in enumerate(sources):
        score: object = source.score
        if score is not None and (
            isinstance(score, bool) or not isinstance(score, Real) or not math.isfinite(score)
        ):
            raise InputError("a number is needed", field=f"passages[{k}].score")


Marked = TypeVar("Marked", Label, Span)


def _exact_all(values: object, kind: type[Marked], field: str) -> tuple[Marked, ...]:
    """Copy labels or spans with plain texts; raises `InputError` for anything else."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"give a list of {kind.__name__}s", field=field)
    marks = []
    for k, mark in enumerate(values):
        if not isinstance(mark, kind):
            raise InputError(f"a {kind.__name__} is needed, not {type(mark).__name__}", field=f"{field}[{k}]")
        exactly = {each.name: getattr(mark, each.name) for each in fields(mark)}
        for name, value in exactly.items():
            if name in ("start", "end", "index"):
                require_whole(value, f"{field}[{k}].{name}")
            exactly[name] = exact(value) if isinstance(value, str) else value
        marks.append(replace(mark, **exactly))
    return tuple(marks)


def _require_places(spans: Sequence[Span], length: int, passages: int) -> None:
    """Raise `InputError` for spans outside the prompt, of missing parts, or that overlap."""
    for k, span in enumerate(spans):
        if not 0 <= span.start < span.end <= length:
            raise InputError(
                f"span {span.start}..{span.end} lies outside the prompt, which has {length} characters",
                field=f"spans[{k}]",
            )
        if span.kind not in ("passage", "question") or not 0 <= span.index < (
            passages if span.kind == "passage" else 1
        ):
            raise InputError(f"there is no {span.kind} {span.index} (counted from 0)", field=f"spans[{k}]")
    for before, after in pairwise(sorted(spans, key=lambda span: span.start)):
        if after.start < before.end:
            raise InputError(
                f"{before.start}..{before.end} and {after.start}..{after.end} overlap", field="spans"
            )


def _names_of(sources: Sequence[Source]) -> dict[str, str]:
    return {
        f"passages[{k}].{field}": name
        for k, source in enumerate(sources)
        for field, name in source.names.items()
    }


def _require_texts(texts: Mapping[str, str], names: Mapping[str, str]) -> None:
    lengths = {field: len(text) for field, text in texts.items()}
    if sum(lengths.values()) > LONGEST_EXAMPLE:
        longest = max(lengths, key=lambda field: lengths[field])
        raise InputError(
            f"the texts have {sum(lengths.values()):,} characters, and at most {LONGEST_EXAMPLE:,} are read",
            field=longest,
        )
    for field, name in names.items():
        if len(name) > LONGEST_NAME:
            raise InputError(f"{len(name):,} characters; at most {LONGEST_NAME:,}", field=field)
    for field, text in (*texts.items(), *names.items()):
        # JSON can spell half a character ("\\ud800"), which no tokenizer and no file can hold.
        if (place := surrogate_in(text)) is not None:
            raise InputError(f"lone surrogate at character {place}", field=field)


def first_sources(sources: Iterable[str], count: int | None) -> set[str]:
    """Return the first `count` different sources, in the order of the data; all for None."""
    return set(list(dict.fromkeys(sources))[:count])


def content_hash(question: str, passages: Sequence[str]) -> str:
    """Return the SHA-256 (first 16 hex digits) of the question and the passages, white space collapsed."""
    texts = [" ".join(text.split()) for text in (question, *passages)]
    return json_hash(texts)[:16]


def render(template: str, question: str, passages: Sequence[str]) -> tuple[str, tuple[Span, ...]]:
    """Fill `{context}` (numbered passages) and `{question}`; return the prompt and the spans."""
    for name in ("context", "question"):
        if template.count(f"{{{name}}}") != 1:
            raise InputError(f"the template must contain {{{name}}} exactly once", field="template")
    text, spans = "", []
    # Braces in the passages are text, so the pieces are joined rather than formatted.
    for piece in re.split(r"(\{context\}|\{question\})", template):
        if piece == "{question}":
            spans.append(Span("question", 0, len(text), len(text) + len(question)))
            text += question
        elif piece == "{context}":
            filled = [(k, passage) for k, passage in enumerate(passages) if passage.strip()]
            for k, passage in filled:
                text += f"{chr(10) * 2 if k > filled[0][0] else ''}passage {k + 1}:"
                spans.append(Span("passage", k, len(text), len(text) + len(passage)))
                text += passage
        else:
            text += piece
    return text, tuple(spans)


def locate(prompt: str, question: str, passages: Sequence[str]) -> tuple[Span, ...]:
    """Find the passages, in their order, and the question (outside them) in a given prompt."""
    try:
        passage_spans = _locate_passages(prompt, passages)
        return (*passage_spans, *_locate_question(prompt, question, passage_spans))
    except InputError:
        start = prompt.find(question) if question else -1
        if start < 0:
            raise
        # A passage may also occur inside the question; then the passages are those after it.
        end = start + len(question)
        with suppress(InputError):
            return (*_locate_passages(prompt, passages, end), Span("question", 0, start, end))
        raise


def _locate_passages(prompt: str, passages: Sequence[str], cursor: int = 0) -> list[Span]:
    spans: list[Span] = []
    for k, passage in enumerate(passages):
        if not passage.strip():
            continue
        start = prompt.find(passage, cursor)
        if start < 0:
            raise InputError(
                f"passage {k + 1} does not occur in the prompt"
                + (" after the passage before it" if passage in prompt else "")
                + "; give passages exactly as the prompt holds them, in its order",
                field=f"passages[{k}]",
            )
        cursor = start + len(passage)
        spans.append(Span("passage", k, start, cursor))
    return spans


def _locate_question(prompt: str, question: str, passages: list[Span]) -> list[Span]:
    if not question:
        return []
    start = prompt.find(question)
    while start >= 0:
        end = start + len(question)
        if all(end <= span.start or start >= span.end for span in passages):
            return [Span("question", 0, start, end)]
        start = prompt.find(question, start + 1)
    raise InputError(
        "the question does not occur in the prompt outside the passages; "
        "give it exactly as the prompt holds it, or leave it empty",
        field="question",
    )
