"""`Extractor`: one open reader that fills the parts of a store, prompt by prompt."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
import torch

from lrp4rag.example import Example
from lrp4rag.features.parts import PROMPT, READING, RELEVANCE, SENTENCES, SIGNALS, STATES, matrix_shape
from lrp4rag.features.replay import PlainReplay
from lrp4rag.lrp.attribute import prompt_mean, pull_mean
from lrp4rag.lrp.flow import Flow, relevance_mode
from lrp4rag.lrp.relevance import Array, Relevance, as_array
from lrp4rag.lrp.resample import resampling_matrix
from lrp4rag.lrp.signals import PromptSignals
from lrp4rag.lrp.units import members, response_units
from lrp4rag.reader.encoding import Encoded
from lrp4rag.reader.reader import Reader
from lrp4rag.training.store import Store
from lrp4rag.util.errors import LRP4RAGError
from lrp4rag.util.tensors import Arrays

Encodings = dict[Example, Encoded]
Failures = dict[Example, str]

_FAILURES = (LRP4RAGError, RuntimeError, IndexError, ValueError)
"""What one response can raise, and the others need not: torch, for example, when memory runs out on one long
row, or where a token has no embedding. A full disk is none of these."""

_ORDER = (READING, STATES, SIGNALS, RELEVANCE, SENTENCES, PROMPT)
"""What is read outside of relevance mode comes first. States bring signals and relevance with them and
sentences R_prompt, so they come next; matrices last."""


@dataclass(frozen=True, slots=True)
class Group:
    """Responses to one prompt, which is read once for all of them.

    `other` has another prompt, whose passages replace the prompt's for one of the signals.
    """

    examples: tuple[Example, ...]
    other: Example | None = None


class Extractor:
    """Writes each part of an example as soon as it is computed. `close` restores the reader's model.

    The reader is in relevance mode while a part needs it, and outside of it for readings.
    """

    def __init__(self, reader: Reader, store: Store, *, max_memory: int | None = None) -> None:
        self.reader, self.store, self._stack = reader, store, ExitStack()
        self._max_memory = max_memory
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
        """Fill the parts that the group's examples lack; returns those that failed, and why."""
        failures: Failures = {}
        encoded: Encodings = {}
        for example in group.examples:
            try:
                encoded[example] = self.reader.encode(example, truncation=self.store.configuration.truncation)
            except _FAILURES as error:
                failures[example] = _reason(error)
        for prompt in _by_prompt(encoded):
            for part in sorted(parts, key=lambda part: _ORDER.index(part) if part in _ORDER else len(_ORDER)):
                failures |= self._attempt(part, prompt, group.other)
        return failures

    def _attempt(self, part: str, encoded: Encodings, other: Example | None) -> Failures:
        """Fill a part of responses to one prompt; one that fails does not take the others with it."""
        lacking = self._lacking(part, encoded)
        if not lacking:
            return {}
        try:
            self._fill(part, lacking, other)
            return {}
        except _FAILURES as error:
            left = self._lacking(part, lacking)
            if len(left) == 1:
                return dict.fromkeys(left, _reason(error))
        failures: Failures = {}
        for example, one in left.items():
            failures |= self._attempt(part, {example: one}, other)
        return failures

    def _lacking(self, part: str, encoded: Encodings) -> Encodings:
        return {example: one for example, one in encoded.items() if not self.store.holds(example, part)}

    def _fill(self, part: str, encoded: Encodings, other: Example | None) -> None:
        if part == READING:
            self.close()
            replay = PlainReplay(self.reader)
            for example, one in encoded.items():
                self.store.write_record(example, replay(one))
        elif part in (SIGNALS, STATES):
            self._fill_signals(part, encoded, other)
        elif part == RELEVANCE:
            self._fill_relevance(encoded)
        elif part in (PROMPT, SENTENCES):
            for example, one in encoded.items():
                if part == SENTENCES:
                    self.store.write_arrays(example, part, pull_sentences(self.flow, one).arrays())
                if self._lacking(PROMPT, {example: one}):
                    self._fill_prompt(example, one)
        elif (shape := matrix_shape(part)) is not None:
            self._fill_matrix(part, encoded, shape)

    def _fill_signals(self, part: str, encoded: Encodings, other: Example | None) -> None:
        first = next(iter(encoded.values()))
        prompt = PromptSignals(self.flow, first, self._encode_other(other))
        for example, one in encoded.items():
            signals, states = prompt.of(one)
            assert signals.by_segment is not None
            # The relevance of the whole prompt is that of its segments, so it costs no tangent of its own.
            response = signals.by_segment.sum(0) / len(one.prompt_ids)
            if self._lacking(RELEVANCE, {example: one}):  # what is there stays as it is
                self.store.write(example, self._relevance(one, response, signals.logits))
            if part == STATES:
                self.store.write_arrays(example, STATES, states.arrays())
            if self._lacking(SIGNALS, {example: one}):
                self.store.write_arrays(example, SIGNALS, signals.arrays())

    def _fill_prompt(self, example: Example, encoded: Encoded) -> None:
        """From stored sentences where there are any: the same bytes in every run, and nothing is pulled."""
        if self.store.holds(example, SENTENCES):
            prompt = Sentences(**self.store.arrays(example, SENTENCES)).prompt
        else:
            prompt = pull_prompt(self.flow, encoded)
        self.store.write_arrays(example, PROMPT, {"prompt": prompt})

    def _encode_other(self, other: Example | None) -> Encoded | None:
        """None for a prompt that cannot be encoded: only its own responses fail for that."""
        try:
            return None if other is None else self.reader.encode_prompt(other, truncation="passages")
        except _FAILURES:
            return None

    def _fill_relevance(self, encoded: Encodings) -> None:
        first = next(iter(encoded.values()))
        prefix = self.flow.prefix(first.prompt_ids, prompt_mean(first))
        for example, one in encoded.items():
            response = as_array(prefix.push(one.response_ids))[0]
            relevance = self._relevance(one, response, as_array(self.flow.explained_logits))
            self.store.write(example, relevance)

    def _fill_matrix(self, part: str, encoded: Encodings, shape: tuple[int, int]) -> None:
        """One tangent for each prompt bin, shared by the responses."""
        first = next(iter(encoded.values()))
        columns = torch.from_numpy(resampling_matrix(len(first.prompt_ids), shape[1]))
        pushed = self.flow.push_shared(list(encoded.values()), columns)
        for (example, one), relevance in zip(encoded.items(), pushed, strict=True):
            rows = resampling_matrix(len(one.response_ids), shape[0])
            self.store.write_arrays(example, part, {"matrix": rows @ as_array(relevance).T})

    def _relevance(self, encoded: Encoded, response: Array, logits: Array) -> Relevance:
        return Relevance(
            encoded=encoded,
            composite=self.flow.composite.name,
            target=self.flow.target,
            reader=self.reader.identity.as_dict(),
            logits=logits,
            response=response,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Sentences:
    """n prompt tokens, s sentences of the response; relevance in logits.

    * `sentences` (s, n): the mean of R* over each sentence's tokens. `spans` (s, 2): its characters.
    * `tokens` (s): how many tokens each has.
    """

    sentences: Array
    spans: Array
    tokens: Array

    @property
    def prompt(self) -> Array:
        """R_prompt (n): every token is in one sentence, so it is their mean, weighted by `tokens`."""
        mean: Array = self.tokens @ self.sentences / self.tokens.sum()
        return mean

    def arrays(self) -> Arrays:
        return {"sentences": self.sentences, "spans": self.spans, "tokens": self.tokens}


def pull_prompt(flow: Flow, encoded: Encoded) -> Array:
    """R_prompt (n), by one cotangent."""
    prompt = as_array(pull_mean(flow, encoded))
    flow.forget()
    return prompt


def pull_sentences(flow: Flow, encoded: Encoded) -> Sentences:
    """One cotangent for each sentence."""
    units = [unit for unit in response_units(encoded, "sentence") if unit.tokens]
    counts = np.array([len(unit.tokens) for unit in units])
    weights = members(units, len(encoded.response_ids)) / counts[:, None]
    rows = as_array(flow.pull(encoded, torch.from_numpy(weights)))
    flow.forget()
    return Sentences(rows, np.array([(unit.start, unit.end) for unit in units]), counts)


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


def _by_prompt(encoded: Encodings) -> list[Encodings]:
    """Responses to the same tokens together: truncation may cut one prompt differently for each."""
    prompts: dict[tuple[int, ...], Encodings] = {}
    for example, one in encoded.items():
        prompts.setdefault(one.prompt_ids, {})[example] = one
    return list(prompts.values())
