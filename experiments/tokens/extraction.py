"""Parts of a store that only the research reads, and how they are computed beside the package's own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from experiments.tokens.signals import PromptSignals, require_signals
from lrp4rag.example import Example
from lrp4rag.features.parts import PROMPT, READING, RELEVANCE, SEGMENTS
from lrp4rag.features.record import Record
from lrp4rag.lrp.flow import Flow
from lrp4rag.lrp.relevance import Array, Relevance, as_array
from lrp4rag.lrp.units import members, response_units
from lrp4rag.reader.encoding import Encoded
from lrp4rag.training.extractor import FILLERS, Encodings, Extractor, Filler
from lrp4rag.training.rows import Rows
from lrp4rag.training.store import Store
from lrp4rag.util.errors import EXAMPLE_ERRORS, InputError
from lrp4rag.util.tensors import Arrays

SIGNALS, STATES, SENTENCES = "signals", "states", "sentences"
"""Relevance by segment and the rest of `Signals`; hidden states of each token (`States`); a row of relevance
for each sentence (`Sentences`)."""


def fill_signals(extractor: Extractor, encoded: Encodings, other: Example | None) -> None:
    _fill(extractor, encoded, other, states=False)


def fill_states(extractor: Extractor, encoded: Encodings, other: Example | None) -> None:
    """With signals and relevance, which come from the same pass."""
    _fill(extractor, encoded, other, states=True)


def _fill(extractor: Extractor, encoded: Encodings, other: Example | None, *, states: bool) -> None:
    store, first = extractor.store, next(iter(encoded.values()))
    require_signals(extractor.flow.model, extractor.flow.composite)
    prompt = PromptSignals(extractor.flow, first, _encode_other(extractor, other))
    for example, one in encoded.items():
        signals, of_states = prompt.of(one)
        assert signals.by_segment is not None
        if not store.holds(example, RELEVANCE):  # what is there stays as it is
            # The relevance of the whole prompt is that of its segments, so it costs no tangent of its own.
            response = signals.by_segment.sum(0) / len(one.prompt_ids)
            store.write(example, extractor.relevance(one, response, signals.logits))
        if states:
            store.write_arrays(example, STATES, of_states.arrays())
        if not store.holds(example, SIGNALS):
            store.write_arrays(example, SIGNALS, signals.arrays())


def _encode_other(extractor: Extractor, other: Example | None) -> Encoded | None:
    """None for a prompt that cannot be encoded: only its own responses fail for that."""
    try:
        return None if other is None else extractor.reader.encode_prompt(other, truncation="passages")
    except EXAMPLE_ERRORS:
        return None


def fill_sentences(extractor: Extractor, encoded: Encodings, _: Example | None) -> None:
    """With R_prompt, which is their mean."""
    for example, one in encoded.items():
        sentences = pull_sentences(extractor.flow, one)
        extractor.store.write_arrays(example, SENTENCES, sentences.arrays())
        if not extractor.store.holds(example, PROMPT):
            extractor.store.write_arrays(example, PROMPT, {"prompt": sentences.prompt})


ALL_FILLERS: dict[str, Filler] = {
    READING: FILLERS[READING],
    STATES: fill_states,
    SIGNALS: fill_signals,
    SEGMENTS: FILLERS[SEGMENTS],
    RELEVANCE: FILLERS[RELEVANCE],
    SENTENCES: fill_sentences,
    PROMPT: FILLERS[PROMPT],
}
"""States bring signals and relevance with them and sentences R_prompt, so they come first."""


@dataclass(frozen=True, slots=True, eq=False)
class Sentences:
    """n prompt tokens, s sentences of the response; relevance in logits.

    * `sentences` (s, n): the mean of R* over each sentence's tokens. `spans` (s, 2): its characters.
    * `tokens` (s): how many tokens each has.
    """

    sentences: Array
    spans: NDArray[Any]
    tokens: NDArray[Any]

    @property
    def prompt(self) -> Array:
        """R_prompt (n): every token is in one sentence, so it is their mean, weighted by `tokens`."""
        mean: Array = self.tokens @ self.sentences / self.tokens.sum()
        return mean

    def arrays(self) -> Arrays:
        return {"sentences": self.sentences, "spans": self.spans, "tokens": self.tokens}


def pull_sentences(flow: Flow, encoded: Encoded) -> Sentences:
    """One cotangent for each sentence."""
    units = [unit for unit in response_units(encoded, "sentence") if unit.tokens]
    counts = np.array([len(unit.tokens) for unit in units])
    weights = members(units, len(encoded.response_ids)) / counts[:, None]
    rows = as_array(flow.pull(encoded, torch.from_numpy(weights)))
    flow.forget()
    return Sentences(rows, np.array([(unit.start, unit.end) for unit in units]), counts)


def records(rows: Rows, *, states: bool = False) -> Iterator[Record]:
    """Relevance and signals of each row, with `states` these too; read one by one, and not cached."""
    for example, relevance in zip(rows.examples, rows.relevances, strict=True):
        yield record_of(rows.store, example, relevance, states=states)


def record_of(store: Store, example: Example, relevance: Relevance, *, states: bool = False) -> Record:
    """What features of a stored response are computed from; raises `InputError` where signals are missing."""
    for part in (SIGNALS, STATES) if states else (SIGNALS,):
        if not store.has(example, part):
            raise InputError(
                f"'{example.id}' has no {part}; extract them (python -m experiments extract --parts "
                f"relevance,signals{',states' if states else ''})",
                path=store.folder,
            )
    signals = store.arrays(example, SIGNALS)
    if store.has(example, SENTENCES):
        signals |= store.arrays(example, SENTENCES)
    made = Record.of(relevance, signals=signals, generator=example.generator)
    return replace(made, states=store.arrays(example, STATES)) if states else made


def records_for(rows: Rows, needs: Iterable[str]) -> Iterator[Record]:
    """Records with the parts of the store that blocks need (`blocks.parts_of`)."""
    if READING in needs:
        return rows.readings()
    return records(rows, states=STATES in needs)
