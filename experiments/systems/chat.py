"""The model that answers a prompt: the reader, or a model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from experiments.systems.encoders import optional
from lrp4rag.util.errors import InputError, LRP4RAGError

if TYPE_CHECKING:
    from lrp4rag.reader.reader import Reader

OPENAI = "https://api.openai.com/v1"
TOP_LOGPROBS = 20  # the most that the endpoint gives


class Chat(Protocol):
    """Answers user messages that stand alone."""

    @property
    def name(self) -> str:
        """Identifies model and weights: its replies are kept under this name."""

    def choose(self, messages: Sequence[str], answers: tuple[str, str]) -> list[float | None]:
        """The probability of the first of two answers, by their tokens at the first place of the reply: p1 /
        (p1 + p2) for each message, None where neither is among the tokens that the model reports."""

    def replies(
        self, messages: Sequence[str], *, max_tokens: int, temperature: float, seed: int
    ) -> list[str]:
        """One reply to each message, which depends on no other; equal ones get replies of their own."""


@dataclass(frozen=True, slots=True)
class LocalChat:
    """The reader as the model that answers. Messages that begin alike are read once."""

    reader: Reader

    @property
    def name(self) -> str:
        identity = self.reader.identity
        return f"{identity.name} ({identity.digest}, {identity.dtype})"

    def choose(self, messages: Sequence[str], answers: tuple[str, str]) -> list[float | None]:
        import torch

        from experiments.systems.prompted import prompted_together

        if not messages:
            return []
        tokenizer = self.reader.tokenizer
        first = [tokenizer(answer, add_special_tokens=False)["input_ids"][0] for answer in answers]
        if first[0] == first[1]:
            raise InputError(f"'{answers[0]}' and '{answers[1]}' begin with the same token of this reader")
        prompt, rest = prompted_together(self.reader, [self.reader.encode_message(text) for text in messages])
        return torch.softmax(prompt.logits_after(rest)[:, first], -1)[:, 0].tolist()

    def replies(
        self, messages: Sequence[str], *, max_tokens: int, temperature: float, seed: int
    ) -> list[str]:
        from experiments.systems.prompted import prompted_together

        prompt, rest = prompted_together(self.reader, [self.reader.encode_message(text) for text in messages])
        return prompt.sample(rest, max_new_tokens=max_tokens, temperature=temperature, seed=seed)


@dataclass(frozen=True, slots=True)
class RemoteChat:
    """A model behind an OpenAI-compatible endpoint; the key is read from OPENAI_API_KEY."""

    model: str
    base_url: str | None = None

    @property
    def url(self) -> str:
        return self.base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI

    @property
    def name(self) -> str:
        return f"{self.model} at {self.url}"

    def choose(self, messages: Sequence[str], answers: tuple[str, str]) -> list[float | None]:
        return [self._choose(message, answers) for message in messages]

    def _choose(self, message: str, answers: tuple[str, str]) -> float | None:
        options = {"max_tokens": 1, "temperature": 0, "logprobs": True, "top_logprobs": TOP_LOGPROBS}
        choice = self._complete(message, **options)
        if choice.logprobs is None or not choice.logprobs.content:
            raise LRP4RAGError(f"{self.name} gives no log-probabilities; take another form of the judge")
        tops = reversed(choice.logprobs.content[0].top_logprobs)
        found = {one.token.strip(): math.exp(one.logprob) for one in tops}
        first, second = (found.get(answer, 0.0) for answer in answers)
        return first / (first + second) if first + second else None

    def replies(
        self, messages: Sequence[str], *, max_tokens: int, temperature: float, seed: int
    ) -> list[str]:
        met = [messages[:k].count(message) for k, message in enumerate(messages)]
        made = (
            self._complete(message, max_tokens=max_tokens, temperature=temperature, seed=1000 * seed + k)
            for k, message in zip(met, messages, strict=True)
        )
        return [(choice.message.content or "").strip() for choice in made]

    def _complete(self, message: str, **options: Any) -> Any:
        """The endpoint's first choice."""
        openai = optional("openai")
        try:
            with openai.OpenAI(base_url=self.url, max_retries=3) as client:
                answer = client.chat.completions.create(
                    model=self.model, messages=[{"role": "user", "content": message}], **options
                )
        except openai.OpenAIError as error:
            raise LRP4RAGError(f"{self.name} did not answer: {error}") from error
        # What is no endpoint may answer with a web page, which the client hands on as text.
        choices = getattr(answer, "choices", None)
        if not choices:
            raise LRP4RAGError(f"{self.name} did not answer with a completion")
        return choices[0]
