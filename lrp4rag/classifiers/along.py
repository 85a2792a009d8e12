"""`ReadingAlong`: each sentence of a response is judged as soon as it ends, knowing only what came before.

A response that is still being written has no end to look at: a sentence's verdict is that of the response
cut after it, and never changes. The reader goes on from what it has read, so that a sentence costs its own
tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lrp4rag.classifiers.analysis import Analyser, nearest_to
from lrp4rag.classifiers.verdict import Contradiction, Sentence, SuspectSpan, Verdict
from lrp4rag.errors import InputError, RelevanceError
from lrp4rag.example import Example
from lrp4rag.reader.encoding import Truncation, tokens_in
from lrp4rag.sentence_stream import Piece, SentenceStream
from lrp4rag.values.nearest import Nearest


@dataclass(frozen=True, slots=True)
class JudgedPiece:
    """A sentence, a line of a list, of a table or of code, with the white space around it.

    * `text` is characters `start` to `end` of the response; all pieces joined are the response.
    * `probability` (0 to 1): the mean of its most suspect tokens; None for white space. It is `suspect` from
      the detector's threshold for sentences on.
    * `so_far`: the probability that the response up to here is hallucinated.
    * `spans`: its suspect spans, with what contradicts them.
    * `abstained`: the response up to here is unlike what the detector learned from.
    * `nearest`: the sentence of the passages that has most of its words.
    """

    start: int
    end: int
    text: str
    probability: float | None
    suspect: bool
    so_far: float | None = None
    spans: tuple[SuspectSpan, ...] = ()
    abstained: bool = False
    nearest: Nearest | None = None


class ReadingAlong:
    """Judges a response to `example` (question and passages) while it is written.

    Feed it text as it comes; the pieces that end are given judged. The analyser is not used for anything else
    in between, unless it remembers several prompts.
    """

    def __init__(
        self,
        analyser: Analyser,
        example: Example,
        *,
        truncation: Truncation = "error",
        language: str = "en",
    ) -> None:
        """Raises `InputError` where the detector marks no tokens, and for an example with a response."""
        if analyser.detector is None or not analyser.detector.model.plain:
            raise InputError("only a detector of plain passes can read along; the bundled one does")
        if example.response is not None:
            raise InputError("give the response in parts, by feed", field="response")
        self.example, self.text = example, ""
        self._analyser, self._truncation = analyser, truncation
        self._stream = SentenceStream(language)

    def prepare(self) -> None:
        """Read the prompt now; else it is read with the first sentence. Raises `InputError` for one that the
        reader cannot read."""
        self._analyser.read_prompt(self.example, truncation=self._truncation)

    def feed(self, text: str) -> Iterator[JudgedPiece]:
        """What ends with this text, each piece judged when it is asked for."""
        return map(self.judge, self.pieces(text))

    def end(self) -> Iterator[JudgedPiece]:
        """The rest."""
        return map(self.judge, self.rest())

    def pieces(self, text: str) -> list[Piece]:
        """What ends with this text; `judge` judges each, wherever it is called."""
        self.text += text
        return self._stream.feed(text)

    def rest(self) -> list[Piece]:
        """What is left where the response ends."""
        return self._stream.end()

    def judge(self, piece: Piece) -> JudgedPiece:
        """One piece, from what was written until its end."""
        unjudged = JudgedPiece(piece.start, piece.end, piece.text, None, suspect=False)
        if not piece.text.strip():
            return unjudged
        # White space after it may become part of the next word's token.
        example = self.example.with_response(self.text[: piece.end].rstrip())
        analysis = self._analyser(example, evidence=False, reasons=False, truncation=self._truncation)
        verdict, offsets = analysis.verdict, analysis.encoded.response_offsets
        assert verdict.marks is not None
        inside = tokens_in(offsets, [(piece.start, piece.end)])
        if not inside.any():
            raise RelevanceError("no verdict: the reader has no token for this part of the response")
        score = verdict.marks.sentence(inside)
        return replace(
            unjudged,
            probability=score,
            suspect=score >= verdict.marks.sentence_threshold,
            so_far=verdict.probability,
            spans=_spans_in(verdict, piece),
            abstained=verdict.abstained,
            nearest=nearest_to(piece.text, example, analysis.encoded),
        )


def _spans_in(verdict: Verdict, piece: Piece) -> tuple[SuspectSpan, ...]:
    """Those that reach into the piece; what contradicts them in another piece is left out."""

    def inside(one: Contradiction) -> bool:
        return piece.start <= one.start and one.end <= piece.end

    return tuple(
        replace(one, contradictions=tuple(filter(inside, one.contradictions)))
        for one in verdict.spans
        if one.start < piece.end and one.end > piece.start
    )


def verdict_of(pieces: Sequence[JudgedPiece], threshold: float | None) -> Verdict | None:
    """Of a response that was read along: its sentences are the pieces, as each was judged when it ended. It
    is called hallucinated from `threshold` on. None where nothing was judged."""
    judged = [one for one in pieces if one.probability is not None]
    if not judged:
        return None
    return Verdict(
        judged[-1].so_far,
        threshold,
        None,
        None,
        tuple(span for one in judged for span in one.spans),
        tuple(
            Sentence(one.start, one.end, one.text, None, (), None, one.suspect, one.probability, one.nearest)
            for one in judged
        ),
    )
