"""Responses replayed through the reader: from tokens to a `Record`, in the flow's mode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol
from weakref import WeakValueDictionary, ref

from lrp4rag.features.contrast import Context, context_of, read_response
from lrp4rag.features.growing import Growing
from lrp4rag.features.parts import MATRIX, MATRIX_SHAPE, PROMPT
from lrp4rag.features.plain import STATE_DEPTH
from lrp4rag.features.record import Record
from lrp4rag.lrp.attribution import attribute
from lrp4rag.lrp.flow import Flow
from lrp4rag.reader.encoding import Encoded
from lrp4rag.reader.reader import Reader
from lrp4rag.reader.reading import LIKELIHOODS, PromptReading
from lrp4rag.util.errors import InputError

AROUND = "around"
"""Its states: before the response, and at each of its tokens."""


class Replay(Protocol):
    """Reads one response after another in the flow that it was made with.

    `keep` leaves the flow what it needs to pull on the same response without reading it again.
    """

    def __call__(self, encoded: Encoded, *, keep: bool = False) -> Record: ...


class RelevanceReplay:
    """Relevance by segment, and what `parts` (of a store) adds to it: R_prompt, R* in bins."""

    def __init__(self, reader: Reader, flow: Flow, parts: tuple[str, ...] = ()) -> None:
        self._reader, self._flow, self._parts = reader, flow, parts

    def __call__(self, encoded: Encoded, *, keep: bool = False) -> Record:
        return Record.of(
            attribute(
                self._reader,
                encoded,
                segments=True,
                prompt=PROMPT in self._parts,
                resampled=MATRIX_SHAPE if MATRIX in self._parts else None,
                flow=self._flow,
                keep=keep,
            )
        )


def _nobody() -> None:
    """Refer to no response."""


@dataclass(slots=True, eq=False)
class _Remembered:
    """A prompt that was read, and what responses to it are compared with; `user` refers to the growing
    response that was read last, None where it grows no more."""

    key: tuple[object, ...]
    reading: PromptReading
    context: Context
    user: Callable[[], Growing | None] = _nobody


class PlainReplay:
    """Likelihoods, states and the scores of values' alternatives, by plain passes: no relevance.

    Outside the flow's mode. The prompt that was read last is remembered, and those used before it as far as
    all of them fit into `most_bytes`; so are several responses to one prompt that grow at a time.
    """

    def __init__(self, reader: Reader, most_bytes: int = 0, beside: PlainReplay | None = None) -> None:
        """What `beside` holds counts too."""
        self._reader, self._most_bytes, self._beside = reader, most_bytes, beside
        self._readings: list[_Remembered] = []  # in the order of their last use
        self._identity = reader.identity.as_dict()

    def __call__(self, encoded: Encoded, *, keep: bool = False, growing: Growing | None = None) -> Record:
        """Raises `InputError` for a response without tokens."""
        prompt, context = self.prompt(encoded, growing)
        if growing is not None:
            growing.go_on(encoded, context)
        try:
            reading, scored = read_response(encoded, context, prompt, self._reader.tokenizer, growing)
        except BaseException:  # a pass that ended in the middle leaves half of its keys behind
            self._readings.pop()
            raise
        self._make_room(1)  # what was read of the response is held too
        signals = {name: getattr(reading, name) for name in LIKELIHOODS}
        return Record(
            encoded,
            self._identity,
            signals,
            {AROUND: reading.states},
            prompt=context,
            scored=scored,
            growing=growing,
        )

    def prompt(self, encoded: Encoded, growing: Growing | None = None) -> tuple[PromptReading, Context]:
        """Return its prompt, read now unless it is remembered, and what responses to it are compared with."""
        remembered = self._remembered(_key(encoded), growing)
        if remembered is None:
            used = () if growing is None else (each for each in self._readings if each.user() is growing)
            before = next((each.reading for each in used), None)  # another excerpt of a long prompt
            self._make_room(0)  # before the next one is made: two prompts need not fit into memory
            reading = PromptReading(self._reader, encoded, state_layers(self._reader), before)
            remembered = _Remembered(_key(encoded), reading, context_of(encoded))
        remembered.user = _nobody if growing is None else ref(growing)
        self._readings.append(remembered)
        return remembered.reading, remembered.context

    def _remembered(self, key: tuple[object, ...], growing: Growing | None) -> _Remembered | None:
        """Return a prompt that was read, and forget it: rather with the growing response, else with one that
        grows no more; a copy of it where there is room for another response."""
        same = [candidate for candidate in reversed(self._readings) if candidate.key == key]
        free = [candidate for candidate in same if growing is not None and candidate.user() is growing]
        free += [candidate for candidate in same if candidate.user() is None]
        if same and not free:
            copied = replace(same[0], reading=same[0].reading.copied())
            if self.bytes + copied.reading.bytes <= self._most_bytes:
                return copied
        for candidate in (*free, *same):
            self._readings.remove(candidate)
            return candidate
        return None

    @property
    def bytes(self) -> int:
        """The size of all that is remembered."""
        return sum(remembered.reading.bytes for remembered in self._readings)

    def forget(self) -> None:
        """Forget all prompts."""
        self._readings.clear()

    def _make_room(self, fewest: int) -> None:
        """Forget what was not used for longest, while there is too much and more than so many prompts."""
        beside = 0 if self._beside is None else self._beside.bytes
        while len(self._readings) > fewest and beside + self.bytes > self._most_bytes:
            del self._readings[0]


class TextReplay:
    """Words, without a reader. The prompt of the last response is remembered, and those that are in use."""

    def __init__(self, reader: Reader) -> None:
        self._identity = reader.identity.as_dict()
        self._last: Context | None = None
        self._contexts = WeakValueDictionary[tuple[object, ...], Context]()

    def __call__(self, encoded: Encoded, *, keep: bool = False, growing: Growing | None = None) -> Record:
        """Raises `InputError` for a response without a word or sign."""
        if not encoded.response_ids:
            raise InputError("the response has no words to judge", field="response")
        context = self.prompt(encoded)
        if growing is not None:
            growing.go_on(encoded, context)
        return Record(encoded, self._identity, prompt=context, growing=growing)

    def prompt(self, encoded: Encoded, growing: Growing | None = None) -> Context:
        """Return what responses to a prompt are compared with."""
        key = encoded.text, encoded.spans
        self._last = self._contexts.get(key) or context_of(encoded)
        self._contexts[key] = self._last
        return self._last

    def forget(self) -> None:
        """Forget the prompt."""
        self._last = None


AnyReplay = TextReplay | PlainReplay
"""What a detector of plain passes reads by."""


def _key(encoded: Encoded) -> tuple[object, ...]:
    """Return what tells prompts apart."""
    return encoded.prompt_ids, encoded.segments


def state_layers(reader: Reader) -> tuple[int, ...]:
    """Return the one layer whose states are kept."""
    layers = len(reader.model.get_decoder().layers)
    return (min(round(STATE_DEPTH * layers), layers) - 1,)
