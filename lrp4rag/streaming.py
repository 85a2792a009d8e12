"""`StreamingDetector`: each sentence of a response is judged as soon as it ends, by what came before it.

A response that is still being written has no end to look at: a sentence's verdict is that of the response cut
after it, and never changes. The reader goes on from what it has read, so that a sentence costs its own
tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from lrp4rag.claims.nearest import Nearest
from lrp4rag.claims.stating import ends_line, followed_in, stating
from lrp4rag.classifiers.analysis import Analysis
from lrp4rag.classifiers.domain import Unlike, each_once
from lrp4rag.classifiers.verdict import STATUSES, Sentence, Status, SuspectSpan, Verdict
from lrp4rag.example import Example
from lrp4rag.util.errors import InputError, RelevanceError
from lrp4rag.util.sentences import Piece, SentenceStream


@dataclass(frozen=True, slots=True)
class JudgedPiece:
    """A sentence, a line of a list, of a table or of code, with the white space around it.

    * `text` is characters `start` to `end` of the response; all pieces joined are the response.
    * `sentence`: what is known of it (see `Sentence`); None for white space.
    * `so_far`: the probability that the response up to here is hallucinated; None where nothing is stated.
    * `spans`: its suspect spans, with what contradicts them.
    * `unlike`: how the response up to here is unlike what the detector learned from.
    * `read`: the passages of a long prompt of which sentences were read (see `Verdict`).
    """

    start: int
    end: int
    text: str
    sentence: Sentence | None = None
    so_far: float | None = None
    spans: tuple[SuspectSpan, ...] = ()
    unlike: tuple[Unlike, ...] = ()
    read: tuple[int, ...] | None = None

    @property
    def status(self) -> Status:
        """That of its sentence; white space states nothing."""
        return "states nothing" if self.sentence is None else self.sentence.status

    @property
    def probability(self) -> float | None:
        """Of its sentence, on the scale of the verdict's threshold."""
        return None if self.sentence is None else self.sentence.probability

    @property
    def suspect(self) -> bool:
        return self.sentence is not None and self.sentence.suspect

    @property
    def abstained(self) -> bool:
        """Whether it could not be judged."""
        return self.status == "not judged"

    @property
    def nearest(self) -> Nearest | None:
        """The sentence of the passages that has most of its words."""
        return None if self.sentence is None else self.sentence.nearest


class Prompt(Protocol):
    """A prompt that was encoded once (`judge.Prompt`), and judges responses to it."""

    @property
    def example(self) -> Example: ...

    def read(self) -> None: ...

    def judge(self, response: str) -> Analysis: ...


class StreamingDetector:
    """Judges a response to `example` (question and passages) while it is written.

    Feed it text as it comes; the pieces that end are given judged. The detector is not used for anything else
    in between, unless it remembers several prompts.
    """

    def __init__(self, prompt: Prompt, *, language: str = "en") -> None:
        """Raises `InputError` for an example with a response."""
        if prompt.example.response is not None:
            raise InputError("give the response in parts, by feed", field="response")
        self.example, self.text = prompt.example, ""
        self._prompt = prompt
        self._stream = SentenceStream(language)
        self._waiting: list[Piece] = []

    def prepare(self) -> None:
        """Read the prompt now; else it is read with the first sentence. Raises `InputError` for one that the
        reader cannot read."""
        self._prompt.read()

    def feed(self, text: str) -> Iterator[JudgedPiece]:
        """Yield what ends with this text, each piece judged when it is asked for. One that states nothing,
        such as a heading, comes with the next one that does."""
        return self._judged(self.ready(text))

    def end(self) -> Iterator[JudgedPiece]:
        """Yield the rest."""
        return self._judged(self.ready(None))

    def _judged(self, ready: Iterable[tuple[Piece, bool]]) -> Iterator[JudgedPiece]:
        for piece, followed in ready:
            yield self.judge(piece, followed=followed)

    def ready(self, text: str | None) -> list[tuple[Piece, bool]]:
        """Return what can be judged, now that this text has come (None: the response has ended): see `due`.
        `judge` judges each, wherever it is called."""
        pieces = [*self.rest(), None] if text is None else self.pieces(text)
        return [pair for piece in pieces for pair in self.due(piece)]

    def pieces(self, text: str) -> list[Piece]:
        """Return what ends with this text."""
        self.text += text
        return self._stream.feed(text)

    def rest(self) -> list[Piece]:
        """Return what is left where the response ends."""
        return self._stream.end()

    def due(self, piece: Piece | None) -> list[tuple[Piece, bool]]:
        """Return the pieces to judge, now that `piece` has come (None: the response has ended), each with
        whether a line with a claim comes after it."""
        if piece is not None and (self.waits(piece) or (self._waiting and not _is_claim(piece))):
            self._waiting.append(piece)
            return []
        ready, self._waiting = [*self._waiting, *([] if piece is None else [piece])], []
        lines = [(each.text.strip(), ends_line(_gap(each))) for each in ready]
        return list(zip(ready, followed_in(lines), strict=True))

    def waits(self, piece: Piece) -> bool:
        """Say whether what a piece states cannot be told before the next one has come: it states nothing by
        itself, or may be a heading."""
        if not any(sign.isalnum() for sign in piece.text):
            return False
        text = piece.text.strip()
        alone = stating(text)
        return alone == "nothing" or (ends_line(_gap(piece)) and stating(text, followed=True) != alone)

    def judge(self, piece: Piece, *, followed: bool = False) -> JudgedPiece:
        """Judge a piece, from what was written until its end; `followed` says that another one comes after
        it."""
        unjudged = JudgedPiece(piece.start, piece.end, piece.text)
        if not piece.text.strip():
            return unjudged
        # White space after it may become part of the next word's token.
        response = self.text[: piece.end].rstrip()
        states = stating(piece.text.strip(), followed=followed)
        if states == "nothing":
            nothing = Sentence(*piece.stripped, piece.text.strip(), None, (), None, "states nothing")
            return replace(unjudged, sentence=nothing)
        verdict = self._prompt.judge(response)
        sentences = [each for each in verdict.sentences if each.end > piece.start and each.start < piece.end]
        if not sentences or all(sentence.probability is None for sentence in sentences):
            raise RelevanceError("no verdict: the reader has no token for this part of the response")
        sentence = _worst(sentences)  # other languages may have other borders
        if states == "an aside" and sentence.status == "supported":
            sentence = replace(sentence, status="states nothing")
        return replace(
            unjudged,
            sentence=replace(sentence, nearest=verdict.nearest_to(piece.text)),
            so_far=verdict.probability,
            spans=tuple(span for span in verdict.spans if span.start < piece.end and span.end > piece.start),
            unlike=verdict.unlike,
            read=verdict.read,
        )


def _worst(sentences: Sequence[Sentence]) -> Sentence:
    """Return, of sentences that share a piece, the one with the strictest status, with the highest
    probability."""
    probabilities = [each.probability for each in sentences if each.probability is not None]
    worst = min(sentences, key=lambda sentence: STATUSES.index(sentence.status))
    return replace(worst, probability=max(probabilities, default=None))


def _gap(piece: Piece) -> str:
    return piece.text[len(piece.text.rstrip()) :]


def _is_claim(piece: Piece) -> bool:
    return stating(piece.text.strip()) == "a claim"


def verdict_of(pieces: Sequence[JudgedPiece], threshold: float | None) -> Verdict | None:
    """Return the verdict on a response that was judged while it was written: its sentences are the pieces, as
    each was judged when it ended. It is called hallucinated from `threshold` on. None where nothing was
    judged."""
    sentences = tuple(piece.sentence for piece in pieces if piece.sentence is not None)
    if not sentences:
        return None
    probabilities = [each.probability for each in sentences if each.probability is not None]
    read = {passage for piece in pieces for passage in piece.read or ()}
    return Verdict(
        max(probabilities, default=None),
        threshold,
        None,
        None,
        tuple(span for piece in pieces for span in piece.spans),
        sentences,
        unlike=each_once(facet for piece in pieces for facet in piece.unlike),
        read=tuple(sorted(read)) or None,
    )
