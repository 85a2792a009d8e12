"""`Record`: what the features of one response are computed from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lrp4rag.claims.answer import Compared, Step, compare_further
from lrp4rag.claims.words import content_words
from lrp4rag.features.contrast import Context, Contrast, arrays_of, context_of, stored_contrasts
from lrp4rag.features.entailment import pairs_of
from lrp4rag.features.growing import Growing, Make, of_each
from lrp4rag.lrp.relevance import Relevance
from lrp4rag.reader.comparer import Entailment, EntailmentModel, bundled_comparer
from lrp4rag.reader.encoding import Encoded
from lrp4rag.util.errors import InputError

Values = NDArray[np.float64]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Record:
    """t response tokens, and what was computed of them: arrays of signals and states by name (see `Reading`),
    and relevance where it was pushed.

    `reader` identifies the reader. `generator` names the model that wrote the response, where known.
    `prompt` is what the response is compared with, and `scored` its claims, where they were just read;
    `source` is that of the response in data that is learned from, and `entailed` what a comparer that did not
    learn from it made of the sentences; `comparer` reads them in the bundled one's place. `growing` is what
    was computed of the sentences of a response that is still being written. `groups` are features that were
    computed of it.
    """

    encoded: Encoded
    reader: Mapping[str, Any]
    signals: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    states: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    generator: str | None = None
    relevance: Relevance | None = None
    prompt: Context | None = None
    scored: tuple[Contrast, ...] | None = None
    source: str | None = None
    entailed: tuple[Entailment, ...] | None = None
    comparer: EntailmentModel | None = None
    growing: Growing | None = None
    groups: dict[str, Values] = field(default_factory=dict, init=False)
    _similarities: dict[tuple[int, int], list[float]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, relevance: Relevance, **more: Any) -> Record:
        """Return a record of this relevance, and the other fields by name."""
        return cls(relevance.encoded, relevance.reader, relevance=relevance, **more)

    def __len__(self) -> int:
        return len(self.encoded.response_ids)

    def __getitem__(self, name: str) -> Values:
        """Return a signal, in float64; raises `InputError` where it was not extracted."""
        if name not in self.signals:
            raise InputError(f"features need the signal '{name}'; extract it (part reading)")
        return np.asarray(self.signals[name], dtype=np.float64)

    def state(self, name: str) -> NDArray[Any]:
        """Return an array of the tokens' hidden states; raises `InputError` where it was not extracted."""
        if name not in self.states:
            raise InputError(f"features need hidden states ('{name}'); extract them (part reading)")
        return self.states[name]

    @cached_property
    def context(self) -> Context:
        """The passages that the response is compared with."""
        return self.prompt or context_of(self.encoded)

    def similarities(self, sentence: tuple[int, int]) -> list[float]:
        """Return how similar each place of the passages is to a sentence of the response (its characters),
        computed once (see `Index.similarities`)."""
        if sentence not in self._similarities:
            words = content_words(self.encoded.response[slice(*sentence)])
            self._similarities[sentence] = self.context.index.similarities(words)
        return self._similarities[sentence]

    def of_each(self, name: str, make: Make[T]) -> list[T]:
        """Return what `make` makes of each sentence, once while the response is growing (see `Growing`)."""
        return of_each(self.growing, self.encoded, name, make)

    @cached_property
    def compared(self) -> list[Compared]:
        """What the passages say of each sentence."""
        context, encoded = self.context.compared, self.encoded

        def further(done: Sequence[Step]) -> Iterator[Step]:
            return compare_further(context, encoded.response, encoded.sentences, done)

        return [step.compared for step in self.of_each("compared", further)]

    @cached_property
    def entailments(self) -> tuple[Entailment, ...]:
        """What the comparer makes of each sentence. Raises `InputError` where it cannot be loaded."""
        if self.entailed is not None:
            if len(self.entailed) != len(self.encoded.sentences):
                raise InputError("what a comparer made of this response is of another one")
            return self.entailed
        comparer = self.comparer or bundled_comparer()
        passages, encoded = self.context.compared, self.encoded

        def further(done: Sequence[Entailment]) -> list[Entailment]:
            pairs = pairs_of(passages, encoded.response, encoded.sentences, first=len(done))
            return comparer(pairs, self.source)

        return tuple(self.of_each("entailments", further))

    @cached_property
    def contrasts(self) -> tuple[Contrast, ...]:
        """The claims of the response with their scored alternatives; raises `InputError` where these were not
        extracted, or by another version."""
        if self.scored is not None:
            return self.scored
        places, scores = self["places"], self["scores"]
        return stored_contrasts(self.encoded, self.context, self["logprob"], places, scores)

    @cached_property
    def numbered(self) -> list[list[int]]:
        """The numbers of each sentence's contrasts."""
        numbers = {span: list[int]() for span in self.encoded.sentences}
        for number, contrast in enumerate(self.contrasts):
            numbers[contrast.claim.sentence].append(number)
        return list(numbers.values())

    @property
    def has_contrasts(self) -> bool:
        return self.scored is not None or "scores" in self.signals

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return signals, states and claims as a store keeps them."""
        claims = {} if self.scored is None else arrays_of(self.scored)
        return {**self.signals, **claims, **self.states}

    def require_relevance(self) -> Relevance:
        """Return the relevance; raises `InputError` where none was pushed."""
        if self.relevance is None:
            raise InputError("this needs relevance; extract it (part relevance)")
        return self.relevance
