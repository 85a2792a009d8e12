"""`Decoding`: the text of tokens as they come, one by one."""

from __future__ import annotations

from typing import Any

from tokenizers.decoders import DecodeStream

from lrp4rag.reader.encoding import Offsets


class Decoding:
    """Decodes a response while it grows. Control tokens have no text."""

    def __init__(self, tokenizer: Any) -> None:
        self._backend: Any = tokenizer.backend_tokenizer
        self._stream = DecodeStream(skip_special_tokens=True)
        self._ids: list[int] = []
        self._texts: list[str] = []

    def step(self, token: int) -> str:
        """What can be read once this token is known: "" while a character is incomplete."""
        self._ids.append(token)
        self._texts.append(self._stream.step(self._backend, token) or "")
        return self._texts[-1]

    @property
    def text(self) -> str:
        """All of it. A character that is incomplete at the end is a replacement character here."""
        decoded: str = self._backend.decode(self._ids, skip_special_tokens=True)
        return decoded

    @property
    def offsets(self) -> Offsets:
        """Where each token's characters are in `text`; tokens that share a character share its place."""
        offsets: list[tuple[int, int]] = []
        start = waiting = 0
        for k, text in enumerate(self._texts):
            waiting += 1
            end = start + len(text) if k + 1 < len(self._texts) else len(self.text)
            if end > start or k + 1 == len(self._texts):
                offsets += [(start, end)] * waiting
                start, waiting = end, 0
        return tuple(offsets)
