"""`Extractor`: one open reader that fills the parts of a store, prompt by prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import torch

from lrp4rag.example import Example
from lrp4rag.features.parts import PROMPT, READING, RELEVANCE, SEGMENTS, matrix_shape
from lrp4rag.features.replay import PlainReplay
from lrp4rag.lrp.attribution import prompt_mean, pull_mean, segment_weights
from lrp4rag.lrp.flow import Flow, relevance_mode
from lrp4rag.lrp.memory import trim_now_and_then
from lrp4rag.lrp.relevance import Array, Relevance, as_array
from lrp4rag.lrp.resampling import resampling_matrix
from lrp4rag.reader.encoding import Encoded
from lrp4rag.reader.reader import Reader
from lrp4rag.training.store import Store
from lrp4rag.util.errors import EXAMPLE_ERRORS

Encodings = dict[Example, Encoded]
Failures = dict[Example, str]


@dataclass(frozen=True, slots=True)
class Group:
    """Responses to one prompt, which is read once for all of them.

    `partner` is an example with another prompt, for fillers that exchange passages.
    """

    examples: tuple[Example, ...]
    partner: Example | None = None


class Extractor:
    """Writes each part of an example as soon as it is computed. `close` restores the reader's model.

    `fillers` compute the parts by name, in their order; matrices come last. The reader is in relevance mode
    while a part needs it, and outside of it for readings.
    """

    def __init__(
        self,
        reader: Reader,
        store: Store,
        *,
        max_memory: int | None = None,
        fillers: Mapping[str, Filler] | None = None,
    ) -> None:
        self.reader, self.store, self._stack = reader, store, ExitStack()
        self._max_memory, self._fillers = max_memory, FILLERS if fillers is None else fillers
        self._flow: Flow | None = None

    @property
    def flow(self) -> Flow:
        if self._flow is None:
            composite = self.store.configuration.composite
            mode = relevance_mode(self.reader.model, composite, max_memory=self._max_memory)
            self._flow = self._stack.enter_context(mode)
        return self._flow

    def close(self) -> None:
        self._stack.close()
        self._flow = None

    @torch.no_grad()
    def run(self, group: Group, parts: Sequence[str]) -> Failures:
        """Fill the parts that the group's examples lack; return the reasons of those that failed."""
        failures: Failures = {}
        encoded: Encodings = {}
        for example in group.examples:
            try:
                encoded[example] = self.reader.encode(example, truncation=self.store.configuration.truncation)
            except EXAMPLE_ERRORS as error:
                failures[example] = _reason(error)
        ordered = [part for part in self._fillers if part in parts]
        ordered += [part for part in parts if part not in self._fillers]
        for prompt in _by_prompt(encoded):
            for part in ordered:
                failures |= self._attempt(part, prompt, group.partner)
        return failures

    def _attempt(self, part: str, encoded: Encodings, partner: Example | None) -> Failures:
        """Fill a part of responses to one prompt; one that fails does not take the others with it."""
        lacking = self._lacking(part, encoded)
        if not lacking:
            return {}
        try:
            if part in self._fillers:
                self._fillers[part](self, lacking, partner)
            else:
                _fill_matrix(self, part, lacking)
            return {}
        except EXAMPLE_ERRORS as error:
            remaining = self._lacking(part, lacking)
            if len(remaining) == 1:
                return dict.fromkeys(remaining, _reason(error))
        failures: Failures = {}
        for example, encoding in remaining.items():
            failures |= self._attempt(part, {example: encoding}, partner)
        return failures

    def _lacking(self, part: str, encoded: Encodings) -> Encodings:
        return {
            example: encoding for example, encoding in encoded.items() if not self.store.holds(example, part)
        }

    def relevance(self, encoded: Encoded, response: Array, logits: Array) -> Relevance:
        """Return R_response (t) with its explained logits, as the store keeps it."""
        return Relevance(
            encoded=encoded,
            composite=self.flow.composite.name,
            target=self.flow.target,
            reader=self.reader.identity.as_dict(),
            logits=logits,
            response=response,
        )


Filler = Callable[[Extractor, Encodings, "Example | None"], None]
"""Computes and writes a part of responses to one prompt."""


def _fill_reading(extractor: Extractor, encoded: Encodings, _: Example | None) -> None:
    extractor.close()
    replay = PlainReplay(extractor.reader)
    for example, encoding in encoded.items():
        extractor.store.write_record(example, replay(encoding))
        trim_now_and_then()


def _fill_segments(extractor: Extractor, encoded: Encodings, _: Example | None) -> None:
    """Push one tangent for each segment; the relevance of the whole prompt is their sum."""
    store, first = extractor.store, next(iter(encoded.values()))
    prefix = extractor.flow.prefix(first.prompt_ids, segment_weights(first))
    for example, encoding in encoded.items():
        by_segment = as_array(prefix.push(encoding.response_ids))
        if not store.holds(example, RELEVANCE):  # a stored one stays as it is
            response = by_segment.sum(0) / len(encoding.prompt_ids)
            logits = as_array(extractor.flow.explained_logits)
            store.write(example, extractor.relevance(encoding, response, logits))
        store.write_arrays(example, SEGMENTS, {"by_segment": by_segment})


def _fill_relevance(extractor: Extractor, encoded: Encodings, _: Example | None) -> None:
    first = next(iter(encoded.values()))
    prefix = extractor.flow.prefix(first.prompt_ids, prompt_mean(first))
    for example, encoding in encoded.items():
        response = as_array(prefix.push(encoding.response_ids))[0]
        logits = as_array(extractor.flow.explained_logits)
        extractor.store.write(example, extractor.relevance(encoding, response, logits))


def _fill_prompt(extractor: Extractor, encoded: Encodings, _: Example | None) -> None:
    """Pull R_prompt (n) by one cotangent."""
    for example, encoding in encoded.items():
        extractor.store.write_arrays(
            example, PROMPT, {"prompt": as_array(pull_mean(extractor.flow, encoding))}
        )
        extractor.flow.forget()


def _fill_matrix(extractor: Extractor, part: str, encoded: Encodings) -> None:
    """Push R* in bins, one tangent for each prompt bin, shared by the responses."""
    shape = matrix_shape(part)
    assert shape is not None
    first = next(iter(encoded.values()))
    columns = torch.from_numpy(resampling_matrix(len(first.prompt_ids), shape[1]))
    pushed = extractor.flow.push_shared(list(encoded.values()), columns)
    for (example, encoding), relevance in zip(encoded.items(), pushed, strict=True):
        rows = resampling_matrix(len(encoding.response_ids), shape[0])
        extractor.store.write_arrays(example, part, {"matrix": rows @ as_array(relevance).T})


FILLERS: dict[str, Filler] = {
    READING: _fill_reading,
    SEGMENTS: _fill_segments,
    RELEVANCE: _fill_relevance,
    PROMPT: _fill_prompt,
}
"""A reading is made outside of relevance mode, so it comes first; segments bring relevance with them."""


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


def _by_prompt(encoded: Encodings) -> list[Encodings]:
    """Group responses to the same tokens: truncation may cut one prompt differently for each."""
    prompts: dict[tuple[int, ...], Encodings] = {}
    for example, encoding in encoded.items():
        prompts.setdefault(encoding.prompt_ids, {})[example] = encoding
    return list(prompts.values())
