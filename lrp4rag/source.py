"""`Source`: a retrieved passage, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass

from lrp4rag.util.text import exact

NAMES = ("id", "title", "version", "effective", "expires", "topic")


@dataclass(frozen=True, slots=True)
class Source:
    """The `text` of a passage, and of the document that it is from: an `id`, `title` and `version`, the dates
    from which it is `effective` and on which it `expires` (ISO 8601, as they were given), its `topic`, and
    the `score` of the retrieval. What is not known is None."""

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
            if isinstance(given := getattr(self, name), str):
                object.__setattr__(self, name, exact(given))

    @property
    def read(self) -> str:
        """What the reader gets to read: the text with its title before it."""
        return f"{self.title}\n{self.text}" if self.title else self.text

    @property
    def names(self) -> dict[str, str]:
        """What is known beside text and score, by field."""
        given = ((name, getattr(self, name)) for name in NAMES)
        return {name: value for name, value in given if value is not None}
