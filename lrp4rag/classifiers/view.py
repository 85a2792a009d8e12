"""A prompt as a reader reads it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import cached_property
from typing import TypeVar

from lrp4rag.claims.arithmetic import Computed
from lrp4rag.claims.derivation import Derivation
from lrp4rag.classifiers.verdict import Contradiction, Difference
from lrp4rag.classifiers.wording import Premise, premise_of, with_derivations
from lrp4rag.example import Example
from lrp4rag.features.excerpt import Excerpt, with_passages
from lrp4rag.reader.encoding import Encoded, Truncation
from lrp4rag.reader.reader import Reader

Located = TypeVar("Located", Contradiction, Difference)


class View:
    """A prompt as it is read, encoded once for all responses to it: all of it, or an excerpt."""

    def __init__(
        self, reader: Reader, example: Example, truncation: Truncation, excerpt: Excerpt | None = None
    ) -> None:
        self.example, self.excerpt, self._reader = example, excerpt, reader
        self._truncation: Truncation = truncation

    @cached_property
    def prompt(self) -> Encoded:
        """The prompt without a response, not truncated."""
        return self._reader.whole_prompt(self.example)

    def fitted(self) -> Encoded:
        """Return the prompt, truncated. Raises `InputError` for one that leaves no room for a response."""
        return self._reader.fit_prompt(self.prompt, max_new_tokens=1, truncation=self._truncation)

    def encode(self, response: str) -> Encoded:
        """Encode a response after the prompt, truncated to the reader's window."""
        return self._reader.with_response(self.prompt, response, truncation=self._truncation)

    def supposing(self, encoded: Encoded) -> tuple[Encoded, tuple[int, ...]] | None:
        """Return, where sentences of a response repeat what only the question supposes, the response after
        the question as the passages would have it, and these sentences' numbers."""
        if self._premise is None:
            return None
        premise, prompt = self._premise
        sentences = premise.repeated_in(encoded.response, encoded.sentences)
        if not sentences:
            return None
        return self._reader.with_response(prompt, encoded.response, truncation=self._truncation), sentences

    @cached_property
    def _premise(self) -> tuple[Premise, Encoded] | None:
        """What only the question supposes, and the prompt without it."""
        premise = premise_of(self.example)
        return None if premise is None else (premise, self._reader.whole_prompt(premise.example))

    def saying(self, derived: Iterable[Derivation], response: str) -> Encoded:
        """Encode a response after passages that also say what it derives from them."""
        return self._encode_after(with_derivations(self.example, derived), response)

    def without(self, passages: Collection[int], response: str) -> Encoded:
        """Encode a response after the prompt without some passages."""
        texts = ["" if number in passages else text for number, text in enumerate(self.example.passages)]
        return self._encode_after(with_passages(self.example, texts), response)

    def _encode_after(self, example: Example, response: str) -> Encoded:
        return View(self._reader, example, self._truncation).encode(response)

    def original(self, items: Iterable[Located]) -> tuple[Located, ...]:
        """Return contradictions or differences with their characters in the passages as they were given."""
        if self.excerpt is None:
            return tuple(items)
        moved = []
        for item in items:
            start, end = self.excerpt.original(item.passage, item.passage_start, item.passage_end)
            moved.append(replace(item, passage_start=start, passage_end=end))
        return tuple(moved)

    def computed(self, values: tuple[Computed, ...]) -> tuple[Computed, ...]:
        """Return values that follow from others, with these others' characters in the passages as given."""
        return values if self.excerpt is None else self.excerpt.computed(values)
