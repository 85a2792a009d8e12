"""`Source`: a retrieved passage and its metadata."""

from __future__ import annotations

from dataclasses import dataclass

from lrp4rag.util.text import exact

NAMES = ("id", "title", "version", "effective", "expires", "topic")


@dataclass(frozen=True, slots=True)
class Source:
    """The `text` of a passage, and its document's `id`, `title`, `version`, the dates from which it is
    `effective` and on which it `expires` (ISO 8601), and `topic`; the `score` is the retrieval's. Unknown
    fields are None."""

    text: str
    id: str | None = None
    title: str | None = None
    version: str | None = None
    effective: str | None = None
    expires: str | None = None
    topic: str | None = None
    score: float | None = None

    def __post_init__(self) -> None:
        for name in ("text", *NAMES):
            if isinstance(text := getattr(self, name), str):
                object.__setattr__(self, name, exact(text))

    @property
    def read(self) -> str:
        """The text that the reader reads: title and text."""
        return f"{self.title}\n{self.text}" if self.title else self.text

    @property
    def names(self) -> dict[str, str]:
        """The known fields, without text and score."""
        fields = ((name, getattr(self, name)) for name in NAMES)
        return {name: value for name, value in fields if value is not None}
