"""Text to tokens and back: `Encoded`, an example as a tokenizer sees it, and `Decoding`, a growing text."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from tokenizers.decoders import DecodeStream

from lrp4rag.example import Example
from lrp4rag.reader.lock import lock_of
from lrp4rag.util.errors import InputError, first_line
from lrp4rag.util.sentences import sentences_in

Truncation = Literal["error", "passages"]
"""Treatment of a prompt that exceeds the window: refuse it, or drop the ends of passages."""

Offsets = tuple[tuple[int, int], ...]

FIRST_PASSAGE = 2
"""Number of the first passage among the segments, after the template and the question."""

# Some templates (Llama 3.x) write today's date, which would give another prompt every day. This is the
# date that Llama 3.2's own template falls back on.
_DATE = "26 Jul 2024"

# Stands for the prompt while the chat template is rendered; from Unicode's private use area.
_PLACEHOLDER = "\ue000lrp4rag\ue001"


@dataclass(frozen=True)
class Encoded:
    """Token ids of prompt (n) and response (t); offsets index `text` and `response`.

    `text` is the prompt as the reader gets it, chat template included. `segments[i]` is the index
    in `segment_names` of the segment that prompt token i belongs to: 0 template, 1 question,
    2 + k passage k + 1. `spans[s]` are the characters of segment s in `text`, (0, 0) where it is not in the
    prompt: character j of a passage is `text[start + j]`, but for white space at the prompt's start that a
    template removed, whose places lie before `prompt_start`. `dropped` counts the tokens that a chosen
    truncation removed.
    """

    prompt_ids: tuple[int, ...]
    response_ids: tuple[int, ...]
    text: str
    response: str
    prompt_offsets: Offsets
    response_offsets: Offsets
    segments: tuple[int, ...]
    segment_names: tuple[str, ...]
    dropped: int = 0
    spans: Offsets = ()
    prompt_start: int = 0

    def __post_init__(self) -> None:
        if not self.spans:  # files of version 0.1.0 have none
            object.__setattr__(self, "spans", _token_spans(self))

    def with_response(self, response: str, tokenizer: Any) -> Encoded:
        """Return the same prompt with another response."""
        ids, offsets = _encode_text(tokenizer, response)
        return replace(self, response=response, response_ids=tuple(ids), response_offsets=tuple(offsets))

    @cached_property
    def sentences(self) -> tuple[tuple[int, int], ...]:
        """The characters (start, end) of the response's sentences."""
        return sentences_in(self.response)

    @property
    def question(self) -> str:
        """The question as the prompt has it; "" if the prompt has none."""
        return self.text[slice(*self.spans[1])] if len(self.spans) > 1 else ""

    @property
    def passages(self) -> tuple[str, ...]:
        """The passages as they were passed in, up to where a truncation cut them; "" for one without text."""
        return tuple(
            self.text[max(start, self.prompt_start) : end].rjust(end - start)
            for start, end in self.spans[FIRST_PASSAGE:]
        )

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Encoded:
        """Build it from JSON of its fields; raises `KeyError`, `TypeError` or `ValueError` for anything
        else."""
        fields = dict(record)
        for name in ("prompt_offsets", "response_offsets", "spans"):
            fields[name] = tuple((start, end) for start, end in fields.get(name, ()))
        for name in ("prompt_ids", "response_ids", "segments", "segment_names"):
            fields[name] = tuple(fields[name])
        return cls(**fields)


def encode(
    example: Example,
    tokenizer: Any,
    *,
    chat_template: bool = True,
    window: int | None = None,
    truncation: Truncation = "error",
) -> Encoded:
    """Encode prompt and response (which may be absent) separately, as generation does.

    Raises `InputError` where the tokens exceed `window`, and for an unknown truncation.
    """
    require_truncation(truncation)
    prompt = encode_prompt(example, tokenizer, chat_template=chat_template)
    return fit(prompt.with_response(example.response or "", tokenizer), window, truncation)


def encode_prompt(example: Example, tokenizer: Any, *, chat_template: bool = True) -> Encoded:
    """Encode the prompt whole, without the response.

    Control tokens are recognised only where the chat template wrote them: their text inside the prompt, or a
    response, stays text.
    """
    before, after = ("", "")
    shift, content = 0, example.prompt
    if chat_template:
        before, content, after = _chat_frame(tokenizer, example.prompt)
        shift = len(before) - example.prompt.index(content)
    ids, offsets = _encode_framed(tokenizer, before, content, after, raw=not chat_template)
    prompt_end = len(before) + len(content)
    spans = [(0, prompt_end + len(after)), *[(0, 0)] * (1 + len(example.passages))]
    for span in example.spans:
        segment = 1 if span.kind == "question" else FIRST_PASSAGE + span.index
        spans[segment] = (span.start + shift, min(span.end + shift, prompt_end))
    return Encoded(
        prompt_ids=tuple(ids),
        response_ids=(),
        text=before + content + after,
        response="",
        prompt_offsets=tuple(offsets),
        response_offsets=(),
        segments=_segments(offsets, spans),
        spans=tuple(spans),
        prompt_start=len(before),
        segment_names=(
            "template",
            "question",
            *(f"passage {k + 1}" for k in range(len(example.passages))),
        ),
    )


def require_template(tokenizer: Any) -> None:
    """Raise `InputError` where the chat template is missing, fails, or rewrites prompts."""
    _chat_frame(tokenizer, "prompt")


class WindowError(InputError):
    """Prompt and response exceed the reader's window."""


def require_truncation(truncation: object) -> None:
    """Raise `InputError` for an unknown truncation."""
    if truncation not in get_args(Truncation):
        raise InputError(f"choose from {', '.join(get_args(Truncation))}", field="truncation")


def encode_message(text: str, tokenizer: Any, *, chat_template: bool = True) -> list[int]:
    """Encode a user's message in the chat template, or as it is; control tokens are recognised in the frame
    only."""
    if not chat_template:
        return _encode_text(tokenizer, text, add_special_tokens=True)[0]
    before, content, after = _chat_frame(tokenizer, text)
    return _encode_framed(tokenizer, before, content, after, raw=False)[0]


class Decoding:
    """Decode a response while it grows. Control tokens have no text."""

    def __init__(self, tokenizer: Any) -> None:
        self._backend: Any = tokenizer.backend_tokenizer
        self._stream = DecodeStream(skip_special_tokens=True)
        self._ids: list[int] = []
        self._texts: list[str] = []

    def step(self, token: int) -> str:
        """Add a token and return the text that it completes: "" while a character is incomplete."""
        self._ids.append(token)
        self._texts.append(self._stream.step(self._backend, token) or "")
        return self._texts[-1]

    @property
    def text(self) -> str:
        """The text so far. An incomplete character at the end is a replacement character."""
        decoded: str = self._backend.decode(self._ids, skip_special_tokens=True)
        return decoded

    @property
    def offsets(self) -> Offsets:
        """The span of each token's characters in `text`; tokens that share a character share its span."""
        offsets: list[tuple[int, int]] = []
        start = waiting = 0
        for k, text in enumerate(self._texts):
            waiting += 1
            end = start + len(text) if k + 1 < len(self._texts) else len(self.text)
            if end > start or k + 1 == len(self._texts):
                offsets += [(start, end)] * waiting
                start, waiting = end, 0
        return tuple(offsets)


def tokens_in(
    offsets: Sequence[tuple[int, int]] | NDArray[np.intp], spans: Sequence[tuple[int, int]]
) -> NDArray[np.bool_]:
    """Return a mask (tokens,) of the tokens that overlap one of the spans."""
    starts, ends = np.asarray(offsets, dtype=np.intp).reshape(-1, 2).T
    inside = np.zeros(len(offsets), dtype=bool)
    for begin, stop in spans:
        inside |= (starts < stop) & (ends > begin)
    return inside


def _chat_frame(tokenizer: Any, prompt: str) -> tuple[str, str, str]:
    """Return the chat template's text before and after the prompt, and the prompt as the template writes
    it."""
    if not tokenizer.chat_template:
        raise InputError(
            "this reader's tokenizer has no chat template; use the raw prompt (chat_template=False)"
        )

    def rendered(content: str) -> str:
        messages = [{"role": "user", "content": content}]
        try:
            text: str = tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True, date_string=_DATE
            )
        except Exception as error:  # a template is a program, and can raise anything
            raise InputError(
                f"this reader's chat template fails: {first_line(error)}; use the raw prompt "
                "(chat_template=False)"
            ) from error
        return text

    before, placeholder, after = rendered(_PLACEHOLDER).partition(_PLACEHOLDER)
    actual = rendered(prompt)
    for content in (prompt, prompt.strip()):
        if placeholder and actual == before + content + after:
            return before, content, after
    raise InputError(
        "this reader's chat template rewrites the prompt, so its tokens cannot be traced back; "
        "use the raw prompt (chat_template=False)"
    )


def _encode_framed(
    tokenizer: Any, before: str, content: str, after: str, *, raw: bool
) -> tuple[list[int], list[tuple[int, int]]]:
    """Encode before + content + after, with control tokens recognised in the frame only."""
    if raw:
        return _encode_text(tokenizer, content, add_special_tokens=True)
    controls = set(tokenizer.all_special_ids) | set(tokenizer.added_tokens_decoder)
    start, end = len(before), len(before) + len(content)
    ids, offsets = _encode_text(tokenizer, before + content + after, controls_are_text=False)
    pairs = zip(ids, offsets, strict=True)
    if not any(token in controls and low < end and high > start for token, (low, high) in pairs):
        return ids, offsets
    # The content spells a control token. It is encoded on its own, as text, together with the frame's
    # text next to it, since tokens may span both.
    head_ids, head_offsets = _encode_text(tokenizer, before, controls_are_text=False)
    last = max((k for k, token in enumerate(head_ids) if token in controls), default=-1)
    cut = head_offsets[last][1] if last >= 0 else 0
    tail_ids, tail_offsets = _encode_text(tokenizer, after, controls_are_text=False)
    first = next((k for k, token in enumerate(tail_ids) if token in controls), len(tail_ids))
    glued = after[: tail_offsets[first][0]] if first < len(tail_ids) else after
    ids, offsets = _encode_text(tokenizer, before[cut:] + content + glued)
    return (
        [*head_ids[: last + 1], *ids, *tail_ids[first:]],
        [
            *head_offsets[: last + 1],
            *((start + cut, stop + cut) for start, stop in offsets),
            *((start + end, stop + end) for start, stop in tail_offsets[first:]),
        ],
    )


def _encode_text(
    tokenizer: Any, text: str, *, controls_are_text: bool = True, add_special_tokens: bool = False
) -> tuple[list[int], list[tuple[int, int]]]:
    if not text:
        return [], []
    with lock_of(tokenizer):  # how control tokens are read is a setting of the tokenizer
        encoding = tokenizer(
            text,
            add_special_tokens=add_special_tokens,
            split_special_tokens=controls_are_text,
            return_offsets_mapping=True,
            verbose=False,
        )
    return encoding["input_ids"], [(start, end) for start, end in encoding["offset_mapping"]]


def _segments(offsets: Sequence[tuple[int, int]], spans: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """Return for each token the segment that overlaps it most, by default the template. Spans of segments do
    not overlap each other, except the template's."""
    ordered = sorted((start, end, segment) for segment, (start, end) in enumerate(spans) if segment)
    starts, stops = ([span[k] for span in ordered] for k in (0, 1))

    def segment_of(start: int, end: int) -> int:
        # Only those of its characters: there can be thousands of passages.
        near = ordered[bisect_right(stops, start) : bisect_left(starts, end)]
        shared = ((min(end, stop) - max(start, begin), segment) for begin, stop, segment in near)
        overlap, segment = max(shared, default=(0, 0))
        return segment if overlap > 0 else 0

    return tuple(segment_of(start, end) for start, end in offsets)


def fit(encoded: Encoded, window: int | None, truncation: Truncation) -> Encoded:
    """Truncate to a number of tokens by dropping the ends of passages; raises `InputError` as `encode`
    does."""
    n, t = len(encoded.prompt_ids), len(encoded.response_ids)
    excess = n + t - window if window is not None else 0
    if excess <= 0:
        return encoded
    lengths = f"prompt of {n} and response of {t} tokens exceed the reader's window of {window}"
    if truncation == "error":
        raise WindowError(f"{lengths}; shorten them, or drop the ends of passages (truncation='passages')")
    droppable = [i for i in range(n) if encoded.segments[i] >= FIRST_PASSAGE]
    if len(droppable) <= excess:
        raise WindowError(f"{lengths}, even without the passages")
    removed = set(droppable[-excess:])
    rest = [i for i in range(n) if i not in removed]
    spans = list(encoded.spans)
    for i in sorted(removed, reverse=True):
        segment, (start, end) = encoded.segments[i], spans[encoded.segments[i]]
        spans[segment] = (start, max(min(end, encoded.prompt_offsets[i][0]), start))
    return replace(
        encoded,
        prompt_ids=tuple(encoded.prompt_ids[i] for i in rest),
        prompt_offsets=tuple(encoded.prompt_offsets[i] for i in rest),
        segments=tuple(encoded.segments[i] for i in rest),
        dropped=excess,
        spans=tuple(spans),
    )


def _token_spans(encoded: Encoded) -> Offsets:
    """Return the span of characters from the first to the last token of each segment."""
    spans: list[tuple[int, int] | None] = [None] * len(encoded.segment_names)
    for (start, end), segment in zip(encoded.prompt_offsets, encoded.segments, strict=True):
        first, last = spans[segment] or (start, end)
        spans[segment] = min(first, start), max(last, end)
    return tuple(span or (0, 0) for span in spans)
