"""`Verdict`: what a detector says of one response, with its evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lrp4rag.claims.arithmetic import Computed
from lrp4rag.claims.nearest import Nearest
from lrp4rag.claims.stating import Stating, stating_of
from lrp4rag.classifiers.decision import Flags
from lrp4rag.classifiers.domain import Unlike, each_once
from lrp4rag.features.units import smoothed
from lrp4rag.lrp.relevance import Array, Relevance
from lrp4rag.reader.encoding import Encoded, tokens_in
from lrp4rag.util.errors import RelevanceError
from lrp4rag.util.sentences import sentences_in
from lrp4rag.util.text import whole_words


@dataclass(frozen=True, slots=True)
class Contradiction:
    """What passage `passage` (an index) has in place of characters `start` to `end` of the response, `text`.

    It has `instead`, at its characters `passage_start` to `passage_end`. `margin` is by how many nats the
    reader finds that likelier, with what follows, and `relevance` the contrastive relevance of the passage,
    in logits: what it speaks for that, less what it speaks for the text; None where it was not pulled.
    """

    start: int
    end: int
    text: str
    instead: str
    passage: int
    passage_start: int
    passage_end: int
    margin: float
    relevance: float | None = None


@dataclass(frozen=True, slots=True)
class SuspectSpan:
    """Characters `start` to `end` (exclusive) of the response, and that `text`.

    `probability` is the mean of its tokens (of a token detector), `relevance` their smoothed mean, None where
    none was pushed, and `passage` the index of the main source, None where it has none or is not known.
    `contradictions` are values in it that a passage has otherwise.
    """

    start: int
    end: int
    text: str
    relevance: float | None = None
    probability: float | None = None
    passage: int | None = None
    contradictions: tuple[Contradiction, ...] = ()

    @property
    def kind(self) -> Literal["contradicted", "unsupported"]:
        return "contradicted" if self.contradictions else "unsupported"


Status = Literal["supported", "contradicted", "unsupported", "states nothing", "not judged"]
FLAGGED: tuple[Status, ...] = ("contradicted", "unsupported")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of the response (or a line of a list, a table, code), its `text`, and what is known of it.

    `status` is what the verdict says of it: supported by the passages, contradicted by one, unsupported,
    stating nothing, or not judged. `probability` (0 to 1) is that of a response of which it is the most
    suspect sentence, so the verdict's threshold is its threshold; None where a detector does not judge
    sentences.

    Relevance is in logits: `relevance` is that of the whole prompt (None where it was not computed), and
    `by_passage` of each passage, summed over prompt tokens and averaged over the sentence's tokens; `passage`
    the index of the largest, None where none is positive or passages were not attributed. `nearest` is the
    sentence of the passages that has most of its words, None where none has any or nobody looked.
    """

    start: int
    end: int
    text: str
    relevance: float | None
    by_passage: tuple[float, ...]
    passage: int | None
    status: Status
    probability: float | None = None
    nearest: Nearest | None = None

    @property
    def suspect(self) -> bool:
        """Whether it is contradicted or unsupported."""
        return self.status in FLAGGED

    def attributed(self, relevance: float, by_passage: Sequence[float]) -> Sentence:
        """The same with relevance of the prompt and of its passages."""
        given = tuple(map(float, by_passage))
        return replace(self, relevance=relevance, by_passage=given, passage=_leading(given))


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a verdict is what it is, of one `sentence` (its number, from 0), in `words`.

    A `feature` that moved it: by how much, in log odds of a hallucination, and its value in the sentence,
    beside quantiles (5, 25, 50, 75, 95 %) of it in faithful sentences. Or a "contradiction", which has no
    such numbers.
    """

    feature: str
    moved: float | None
    sentence: int
    value: float | None = None
    faithful: tuple[float, ...] = ()
    words: str = ""

    @property
    def usual(self) -> bool:
        """Whether its value lies in the middle half of those of faithful sentences: it explains nothing."""
        return self.value is not None and self.faithful[1] <= self.value <= self.faithful[3]


@dataclass(frozen=True, slots=True, eq=False)
class TokenMarks:
    """What a token detector makes of t tokens: in a suspect sentence, those are marked whose probability is
    `threshold` or more."""

    probabilities: Array
    threshold: float


@dataclass(frozen=True, slots=True, eq=False)
class Claims:
    """What a token detector makes of S sentences: their `probabilities` (S,) (see `Sentence`), and what each
    states."""

    probabilities: NDArray[np.float64]
    stating: tuple[Stating, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """`probability` that the response is hallucinated; it is called so from `threshold` on: where a sentence
    of it is contradicted or unsupported, and nowhere else.

    Without a detector (evidence only) both are None and no sentence is judged. Where the example is `unlike`
    the training data in a way that decides, there is a probability and no verdict (`abstained`); where the
    response states nothing, there is a threshold and no verdict.
    `token_relevance` (t) is the smoothed relevance of the prompt, which marks the suspect tokens of a vector
    detector, None where none was pushed; `marks` are a token detector's. `shift` is what the known
    generator adds to the log odds. `computed` are values that no passage has and that follow from some that
    one has.
    """

    probability: float | None
    threshold: float | None
    token_relevance: Array | None
    token_threshold: float | None
    spans: tuple[SuspectSpan, ...]
    sentences: tuple[Sentence, ...]
    marks: TokenMarks | None = None
    reasons: tuple[Reason, ...] = ()
    unlike: tuple[Unlike, ...] = ()
    shift: float = 0.0
    computed: tuple[Computed, ...] = ()

    def __post_init__(self) -> None:
        """What is no number compares as below any threshold: it must not pass for "grounded"."""
        if self.probability is not None and not 0 <= self.probability <= 1:
            raise RelevanceError(f"no verdict: the probability is {self.probability}, which is none")

    @property
    def abstained(self) -> bool:
        return any(one.decides for one in self.unlike)

    @property
    def states_nothing(self) -> bool:
        """Whether no sentence states something that a passage could support."""
        return self.threshold is not None and not any(
            one.status != "states nothing" for one in self.sentences
        )

    @property
    def hallucinated(self) -> bool | None:
        if self.probability is None or self.threshold is None or self.abstained or self.states_nothing:
            return None
        return self.probability >= self.threshold

    @property
    def contradictions(self) -> tuple[Contradiction, ...]:
        """Those of all its spans, each once."""
        return tuple(dict.fromkeys(one for span in self.spans for one in span.contradictions))


def judge(
    encoded: Encoded,
    relevance: Relevance | None = None,
    *,
    probability: float | None = None,
    threshold: float | None = None,
    token_threshold: float | None = None,
    marks: TokenMarks | None = None,
    claims: Claims | None = None,
    contradictions: Sequence[Contradiction] = (),
    unlike: Sequence[tuple[Unlike, ...]] = (),
) -> Verdict:
    """Put probability and evidence together, sentence by sentence.

    `claims` tell which sentences are suspect. Of a detector without them, which judges the response only,
    those are where smoothed relevance is below `token_threshold` in half of the tokens, or that with the
    lowest relevance, if the response is. `unlike` tells of each sentence how the response up to its end is
    unlike the training data: where that decides, it is not judged.
    """
    text, offsets = encoded.response, encoded.response_offsets
    smooth = None if relevance is None else smoothed(relevance.total)
    places = sentences_in(text)
    inside = [tokens_in(offsets, [place]) for place in places]
    if claims is not None:
        statuses = _statuses(claims, threshold)
    else:
        flagged = probability is not None and threshold is not None and probability >= threshold
        statuses = _of_response(
            stating_of(text, places),
            inside,
            relevance,
            token_threshold,
            judged=threshold is not None,
            flagged=flagged,
        )
    for number, some in enumerate(unlike):
        if any(one.decides for one in some) and statuses[number] != "states nothing":
            statuses[number] = "not judged"
    spans, sentences = list[SuspectSpan](), list[Sentence]()
    for number, ((start, end), tokens) in enumerate(zip(places, inside, strict=True)):
        status, by_passage = statuses[number], _by_passage(relevance, tokens)
        if claims is not None and status == "supported" and not tokens.any():
            status = "not judged"  # the reader has no token of it
        told = tuple(each for each in contradictions if start <= each.start and each.end <= end)
        if status == "unsupported" and told:
            status = "contradicted"
        if status in FLAGGED:
            marked = _marked(tokens, smooth, token_threshold, marks, offsets, told)
            spans += _spans(encoded, relevance, smooth, marks, marked, told)
        sentences.append(
            Sentence(
                start,
                end,
                text[start:end],
                None if relevance is None or not tokens.any() else float(relevance.total[tokens].mean()),
                by_passage,
                _leading(by_passage),
                status,
                None
                if claims is None or claims.stating[number] == "nothing"
                else float(claims.probabilities[number]),
            )
        )
    return Verdict(
        probability=probability,
        threshold=threshold,
        token_relevance=None if smooth is None else smooth.astype(np.float32),
        token_threshold=token_threshold,
        spans=tuple(spans),
        sentences=tuple(sentences),
        marks=marks,
        unlike=_told_once(unlike, sentences),
    )


def _told_once(unlike: Sequence[tuple[Unlike, ...]], sentences: Sequence[Sentence]) -> tuple[Unlike, ...]:
    """Each facet once; of what states nothing, none is told."""
    return each_once(
        one
        for some, sentence in zip(unlike, sentences, strict=False)
        if sentence.status != "states nothing"
        for one in some
    )


def _statuses(claims: Claims, threshold: float | None) -> list[Status]:
    """By the probabilities of sentences: an aside states nothing unless it is suspect."""
    found = list[Status]()
    for probability, stating in zip(claims.probabilities, claims.stating, strict=True):
        if threshold is None:
            found.append("not judged")
        elif stating == "nothing":
            found.append("states nothing")
        elif probability >= threshold:
            found.append("unsupported")
        else:
            found.append("supported" if stating == "a claim" else "states nothing")
    return found


def _of_response(
    stating: Sequence[Stating],
    inside: Sequence[Flags],
    relevance: Relevance | None,
    token_threshold: float | None,
    *,
    judged: bool,
    flagged: bool,
) -> list[Status]:
    """Where a detector judges the response only."""
    found: list[Status] = [
        "not judged" if not judged else "supported" if one == "a claim" else "states nothing"
        for one in stating
    ]
    there = [k for k, one in enumerate(stating) if one != "nothing" and inside[k].any()]
    if not flagged or not there:
        return found
    suspect = there
    if relevance is not None:
        total, low = relevance.total, -np.inf if token_threshold is None else token_threshold
        smooth = smoothed(total)
        suspect = [k for k in there if (smooth[inside[k]] < low).mean() >= 0.5]
        # Smoothed, short sentences beside each other are alike.
        suspect = suspect or [min(there, key=lambda k: float(total[inside[k]].mean()))]
    for k in suspect:
        found[k] = "unsupported"
    return found


def _marked(
    tokens: Flags,
    smooth: NDArray[np.float64] | None,
    token_threshold: float | None,
    marks: TokenMarks | None,
    offsets: Sequence[tuple[int, int]],
    told: Sequence[Contradiction],
) -> Flags:
    """Which tokens of a suspect sentence are: by their own probability or relevance, and the contradicted
    values; all of them where nothing tells."""
    if marks is not None:
        own = marks.probabilities >= marks.threshold
    elif smooth is not None and token_threshold is not None:
        own = smooth < token_threshold
    else:
        own = np.zeros(len(offsets), dtype=bool)
    marked = tokens & (own | tokens_in(offsets, [(one.start, one.end) for one in told]))
    return marked if marked.any() else tokens


def _spans(
    encoded: Encoded,
    relevance: Relevance | None,
    smooth: NDArray[np.float64] | None,
    marks: TokenMarks | None,
    marked: Flags,
    told: Sequence[Contradiction],
) -> Iterator[SuspectSpan]:
    offsets, text = encoded.response_offsets, encoded.response
    for start, end in merged_spans(marked, offsets, text):
        inside = tokens_in(offsets, [(start, end)])
        yield SuspectSpan(
            start,
            end,
            text[start:end],
            None if smooth is None else float(smooth[inside].mean()),
            None if marks is None else float(marks.probabilities[inside].mean()),
            _leading(_by_passage(relevance, inside)),
            tuple(one for one in told if one.start < end and one.end > start),
        )


def relevance_in(relevance: Relevance, start: int, end: int) -> float:
    """The smoothed relevance of the prompt (logits), averaged over the tokens of characters `start` to
    `end` of the response."""
    inside = tokens_in(relevance.encoded.response_offsets, [(start, end)])
    return float(smoothed(relevance.total)[inside].mean())


def leading(relevance: Relevance, start: int, end: int) -> int | None:
    """The index of the passage with most relevance for these characters of the response; None where none has
    any."""
    return _leading(_by_passage(relevance, tokens_in(relevance.encoded.response_offsets, [(start, end)])))


def _by_passage(relevance: Relevance | None, inside: Flags) -> tuple[float, ...]:
    if relevance is None or relevance.by_segment is None or not inside.any():
        return ()
    return tuple(map(float, relevance.by_segment[2:, inside].mean(1)))


def _leading(by_passage: tuple[float, ...]) -> int | None:
    return int(np.argmax(by_passage)) if by_passage and max(by_passage) > 0 else None


def merged_spans(suspect: Flags, offsets: Sequence[tuple[int, int]], text: str) -> list[tuple[int, int]]:
    """Character spans of runs of suspect tokens: whole words, no white space around them."""
    spans: list[tuple[int, int]] = []
    running = False
    for flag, (first, last) in zip(suspect, offsets, strict=True):
        start, end = _whole_words(first, last, text)
        running = running and bool(flag)
        if not flag or start == end:
            continue
        if spans and (running or start <= spans[-1][1]):
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
        running = True
    return spans


def _whole_words(start: int, end: int, text: str) -> tuple[int, int]:
    piece = text[start:end]
    if not piece.strip():
        return start, start
    return whole_words(text, end - len(piece.lstrip()), start + len(piece.rstrip()))
