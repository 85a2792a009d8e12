"""Responses replayed through the reader: from tokens to a `Record`, in the flow's mode."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from lrp4rag.errors import InputError
from lrp4rag.features.parts import MATRIX, MATRIX_SHAPE, PROMPT
from lrp4rag.features.record import Record
from lrp4rag.lrp.attribute import attribute
from lrp4rag.lrp.flow import Flow
from lrp4rag.lrp.relevance import Relevance
from lrp4rag.lrp.signals import PromptSignals, Wanted
from lrp4rag.reader.encoding import Encoded
from lrp4rag.reader.reader import Reader


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
        return Record(
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


class SignalReplay:
    """Relevance with the signals and states that are wanted.

    The prompt that was read last is remembered: a further response to it costs its own tokens only.
    """

    def __init__(self, reader: Reader, flow: Flow, wanted: Wanted) -> None:
        self._reader, self._flow, self._wanted = reader, flow, wanted
        self._prompt: tuple[object, ...] = ()
        self._signals: PromptSignals | None = None

    def __call__(self, encoded: Encoded, *, keep: bool = False) -> Record:
        """Raises `InputError` for a response without tokens. Where segments are not told apart, the
        relevance is that of the passages only."""
        if not encoded.response_ids:
            raise InputError("the response has no tokens", field="response")
        signals, states = self._read(encoded).of(encoded)
        whole = signals.passages if signals.by_segment is None else signals.by_segment.sum(0)
        assert whole is not None
        relevance = Relevance(
            encoded=encoded,
            composite=self._flow.composite.name,
            target=self._flow.target,
            reader=self._reader.identity.as_dict(),
            logits=signals.logits,
            response=(whole / len(encoded.prompt_ids)).astype(np.float32),
            by_segment=signals.by_segment,
        )
        return Record(relevance, signals.arrays(), states.arrays())

    def _read(self, encoded: Encoded) -> PromptSignals:
        prompt = (encoded.prompt_ids, encoded.segments, encoded.segment_names)
        if self._signals is None or prompt != self._prompt:
            self._signals = None  # before the next one is made: two prompts need not fit into memory
            self._signals = PromptSignals(self._flow, encoded, None, self._wanted, staged=True)
            self._prompt = prompt
        return self._signals
