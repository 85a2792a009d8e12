"""`Verdict`: what a detector says of one response, with its evidence; `Judgement`: what it is built of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from lrp4rag.claims.arithmetic import Computed
from lrp4rag.claims.nearest import Nearest
from lrp4rag.claims.stating import Stating, stating_of
from lrp4rag.classifiers.decision import Flags
from lrp4rag.classifiers.domain import Unlike, each_once
from lrp4rag.features.units import smoothed
from lrp4rag.lrp.relevance import Array, Relevance
from lrp4rag.reader.encoding import FIRST_PASSAGE, Encoded, tokens_in
from lrp4rag.util.errors import RelevanceError
from lrp4rag.util.text import whole_words


@dataclass(frozen=True, slots=True)
class Contradiction:
    """The value or clause of passage `passage` (an index) that contradicts characters `start` to `end` of the
    response, `text`.

    It has `instead`, at its characters `passage_start` to `passage_end`. `margin` is by how many nats the
    reader finds that likelier, with what follows (None where it scored nothing there), and `relevance`
    the contrastive relevance of the passage, in logits: what it speaks for that, less what it speaks for the
    text; None where it was not pulled.
    """

    start: int
    end: int
    text: str
    instead: str
    passage: int
    passage_start: int
    passage_end: int
    margin: float | None
    relevance: float | None = None


DifferenceKind = Literal["left out", "answered", "said of another"]


@dataclass(frozen=True, slots=True)
class Difference:
    """Characters `start` to `end` of a response differ from what `words` say, characters `passage_start` to
    `passage_end` of passage `passage` (an index):

    * "left out": the passage's condition, which the response leaves out.
    * "answered": the passage may have what the response says to be missing.
    * "said of another": the passage says it of `subject`.
    """

    kind: DifferenceKind
    start: int
    end: int
    passage: int
    passage_start: int
    passage_end: int
    words: str
    subject: str = ""


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


Flagged = Literal["contradicted", "unsupported"]
FLAGGED: tuple[Flagged, ...] = get_args(Flagged)
Status = Literal[Flagged, "not judged", "supported", "states nothing"]
STATUSES: tuple[Status, ...] = get_args(Status)
"""From the strictest to the mildest."""
STATING: tuple[Status, ...] = ("supported", *FLAGGED)
"""Of sentences that state something and were judged."""


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
    sentence of the passages that has most of its words, None where none has any or it was not looked for.
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
    """The probabilities (t,) of a token detector: in a suspect sentence, tokens from `threshold` on are
    marked."""

    probabilities: Array
    threshold: float


@dataclass(frozen=True, slots=True, eq=False)
class Claims:
    """The `probabilities` (S,) of S sentences by a token detector (see `Sentence`), and what each states."""

    probabilities: NDArray[np.float64]
    stating: tuple[Stating, ...]

    @property
    def highest(self) -> float | None:
        """The probability of the most suspect sentence that states something; None without one."""
        sentences = zip(self.probabilities, self.stating, strict=True)
        stated = (float(probability) for probability, stating in sentences if stating != "nothing")
        return max(stated, default=None)


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
    one has. `read` are the passages (counted from 0) of a long prompt of which sentences were read, None
    where all were read whole.
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
    differences: tuple[Difference, ...] = ()
    read: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse NaN, which compares as below any threshold: it must not pass for "grounded"."""
        if self.probability is not None and not 0 <= self.probability <= 1:
            raise RelevanceError(
                f"no verdict: the detector returned an invalid probability, {self.probability}"
            )

    @property
    def abstained(self) -> bool:
        return any(facet.decides for facet in self.unlike)

    @property
    def states_nothing(self) -> bool:
        """Whether no sentence states something that a passage could support."""
        return self.threshold is not None and not any(
            sentence.status != "states nothing" for sentence in self.sentences
        )

    @property
    def hallucinated(self) -> bool | None:
        if self.probability is None or self.threshold is None or self.abstained or self.states_nothing:
            return None
        return self.probability >= self.threshold

    @property
    def contradictions(self) -> tuple[Contradiction, ...]:
        """Those of all its spans, each once."""
        return tuple(dict.fromkeys(each for span in self.spans for each in span.contradictions))


@dataclass(frozen=True, slots=True, eq=False)
class Assessment:
    """A model's judgement of one response.

    * `probability`: that it is hallucinated, None where it states nothing; `shift` is what its known
      generator added to the log odds.
    * `marks`: the probabilities of its tokens, of a model that scores tokens.
    * `claims`: of its sentences, and `contradictions`: the values that a passage has otherwise, likewise;
      `differences`: what else passages have against its sentences.
    * `token_threshold`: smoothed relevance (in logits) below which tokens are suspect, of one that does not.
    """

    probability: float | None = None
    shift: float = 0.0
    marks: TokenMarks | None = None
    claims: Claims | None = None
    contradictions: tuple[Contradiction, ...] = ()
    differences: tuple[Difference, ...] = ()
    token_threshold: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """The evidence that a verdict shows beside the judgement.

    * `nearest`: the nearest sentence of the passages, of each sentence; `computed`: values that follow.
    * `reasons`: the features that moved it.
    * `by_sentence`: relevance of each passage and of the whole prompt, by the number of a suspect sentence;
      `contrastive`: relevance of contradictions. None where they were not pulled.
    """

    nearest: Sequence[Nearest | None] = ()
    computed: tuple[Computed, ...] = ()
    reasons: tuple[Reason, ...] = ()
    by_sentence: Mapping[int, tuple[float, Sequence[float]]] | None = None
    contrastive: Mapping[Contradiction, float | None] = field(default_factory=dict)


V = TypeVar("V", bound=Verdict)
P = TypeVar("P", Contradiction, Difference)


@dataclass(frozen=True, slots=True, eq=False)
class Judgement:
    """A response judged sentence by sentence: all that decides, before the evidence is gathered.

    `spans` are the sentences' characters (S,), `tokens` which tokens they have, and `statuses` what is said
    of them; `unlike` of each what is unlike the training data. `response` is the text as it is shown:
    characters are those of `encoded.response`. `replayed` is the same response as the reader reads it, whose
    tokens relevance is of: another prompt and other tokens where texts alone were judged; None where the
    reader has no room for it.
    """

    encoded: Encoded
    response: str
    relevance: Relevance | None
    assessment: Assessment
    threshold: float | None
    spans: tuple[tuple[int, int], ...]
    tokens: tuple[Flags, ...]
    statuses: tuple[Status, ...]
    unlike: tuple[tuple[Unlike, ...], ...]
    replayed: Encoded | None

    @classmethod
    def of(
        cls,
        encoded: Encoded,
        assessment: Assessment,
        threshold: float | None,
        *,
        relevance: Relevance | None = None,
        unlike: Sequence[tuple[Unlike, ...]] = (),
    ) -> Judgement:
        """Say of each sentence what the assessment makes of it, at a threshold (None: nothing is judged).

        `assessment.claims` tell which sentences are suspect. Of a model without them, which judges the
        response only, those are where smoothed relevance is below `token_threshold` in half of the tokens,
        or that with the lowest relevance, if the response is. A sentence is not judged where the response up
        to its end is `unlike` the training data in a way that decides.
        """
        text, claims, spans = encoded.response, assessment.claims, encoded.sentences
        tokens = tuple(tokens_in(encoded.response_offsets, [span]) for span in spans)
        if claims is not None:
            statuses = _statuses_of_claims(claims, threshold)
        else:
            statuses = _statuses_of_response(
                stating_of(text, spans), tokens, relevance, assessment, threshold
            )
        for number, facets in enumerate(unlike):
            if any(facet.decides for facet in facets) and statuses[number] != "states nothing":
                statuses[number] = "not judged"
        for number, (start, end) in enumerate(spans):
            if claims is not None and statuses[number] == "supported" and not tokens[number].any():
                statuses[number] = "not judged"  # the reader has no token of it
            inside = _within(start, end, assessment.contradictions)
            if statuses[number] == "unsupported" and inside:
                statuses[number] = "contradicted"
        return cls(
            encoded=encoded,
            response=text,
            relevance=relevance,
            assessment=assessment,
            threshold=threshold,
            spans=spans,
            tokens=tokens,
            statuses=tuple(statuses),
            unlike=tuple(unlike),
            replayed=encoded,
        )

    @property
    def suspect(self) -> list[int]:
        """The numbers of the contradicted and unsupported sentences."""
        return [number for number, status in enumerate(self.statuses) if status in FLAGGED]

    @property
    def decides(self) -> bool:
        """Whether the verdict will say that the response is hallucinated, or that it is not."""
        judged = self.threshold is not None and self.assessment.probability is not None
        facets = each_once(self._facets())
        states = any(status != "states nothing" for status in self.statuses)
        return judged and states and not any(facet.decides for facet in facets)

    def probability_of(self, number: int) -> float | None:
        """Return that of a sentence, None where it states nothing and of a model that judges responses
        only."""
        claims = self.assessment.claims
        if claims is None or claims.stating[number] == "nothing":
            return None
        return float(claims.probabilities[number])

    @property
    def differences(self) -> tuple[Difference, ...]:
        """Those of suspect sentences."""
        spans = [self.spans[number] for number in self.suspect]
        every = self.assessment.differences
        return tuple(each for each in every if any(start <= each.start < end for start, end in spans))

    def contradictions_in(self, number: int) -> tuple[Contradiction, ...]:
        """Return those of a sentence."""
        return _within(*self.spans[number], self.assessment.contradictions)

    def at(self, shift: Callable[[Any], Any], threshold: float) -> Judgement:
        """Shift the probabilities, and set the threshold that is shifted with them: statuses stay."""
        return replace(self, assessment=shifted(self.assessment, shift), threshold=threshold)

    def verdict(self, evidence: Evidence, kind: type[V], /, **details: Any) -> V:
        """Build the verdict; `details` are the further fields of a `kind` that has some."""
        relevance, assessment = self.relevance, self.assessment
        smooth = None if relevance is None else smoothed(relevance.total)
        sentences = tuple(self._sentence(number, evidence) for number in range(len(self.spans)))
        return kind(
            probability=assessment.probability,
            threshold=self.threshold,
            token_relevance=None if smooth is None else smooth.astype(np.float32),
            token_threshold=assessment.token_threshold,
            spans=tuple(
                span
                for number in self.suspect
                for span in self._spans(number, sentences[number], smooth, evidence)
            ),
            sentences=sentences,
            marks=assessment.marks,
            reasons=evidence.reasons,
            unlike=each_once(self._facets()),
            shift=assessment.shift,
            computed=evidence.computed,
            differences=self.differences,
            **details,
        )

    def _facets(self) -> Iterator[Unlike]:
        """Yield the facets outside the training data's ranges, without those of sentences that state
        nothing."""
        for facets, status in zip(self.unlike, self.statuses, strict=False):
            if status != "states nothing":
                yield from facets

    def _sentence(self, number: int, evidence: Evidence) -> Sentence:
        start, end = self.spans[number]
        relevance, by_passage = None, _by_passage(self.relevance, start, end)
        if self.relevance is not None and (inside := _tokens_of(self.relevance, start, end)).any():
            relevance = float(self.relevance.total[inside].mean())
        elif evidence.by_sentence is not None and number in evidence.by_sentence:
            relevance, pulled = evidence.by_sentence[number]
            by_passage = tuple(map(float, pulled))
        return Sentence(
            start,
            end,
            self.response[start:end],
            relevance,
            by_passage,
            _leading(by_passage),
            self.statuses[number],
            self.probability_of(number),
            evidence.nearest[number] if evidence.nearest else None,
        )

    def _spans(
        self, number: int, sentence: Sentence, smooth: NDArray[np.float64] | None, evidence: Evidence
    ) -> Iterator[SuspectSpan]:
        """Yield the suspect spans of a suspect sentence."""
        offsets, marks = self.encoded.response_offsets, self.assessment.marks
        contradictions = [
            replace(
                contradiction,
                text=self.response[contradiction.start : contradiction.end],
                relevance=evidence.contrastive.get(contradiction, contradiction.relevance),
            )
            for contradiction in self.contradictions_in(number)
        ]
        marked = self._marked(number, smooth, contradictions)
        for start, end in merged_spans(marked, offsets, self.encoded.response):
            inside = tokens_in(offsets, [(start, end)])
            touched = tuple(each for each in contradictions if each.start < end and each.end > start)
            passage = sentence.passage
            if touched and (self.relevance is not None or evidence.by_sentence is not None):
                passage = touched[0].passage
            elif self.relevance is not None:
                passage = _leading(_by_passage(self.relevance, start, end))
            yield SuspectSpan(
                start,
                end,
                self.response[start:end],
                self._relevance_of(smooth, start, end),
                None if marks is None else float(marks.probabilities[inside].mean()),
                passage,
                touched,
            )

    def _relevance_of(self, smooth: NDArray[np.float64] | None, start: int, end: int) -> float | None:
        """Return the mean of smoothed relevance over characters of the response."""
        if self.relevance is None or smooth is None:
            return None
        return float(smooth[_tokens_of(self.relevance, start, end)].mean())

    def _marked(
        self, number: int, smooth: NDArray[np.float64] | None, contradictions: Sequence[Contradiction]
    ) -> Flags:
        """Return which tokens of a suspect sentence are suspect: by their own probability or relevance, and
        the contradicted values; all of them where none is."""
        offsets, tokens = self.encoded.response_offsets, self.tokens[number]
        marks, threshold = self.assessment.marks, self.assessment.token_threshold
        suspect = np.zeros(len(offsets), dtype=bool)
        if marks is not None:
            suspect = marks.probabilities >= marks.threshold
        elif smooth is not None and threshold is not None:
            suspect = smooth < threshold
        spans = [(contradiction.start, contradiction.end) for contradiction in contradictions]
        marked = tokens & (suspect | tokens_in(offsets, spans))
        return marked if marked.any() else tokens


def _within(start: int, end: int, contradictions: Iterable[Contradiction]) -> tuple[Contradiction, ...]:
    """Return those of characters `start` to `end` of the response."""
    return tuple(each for each in contradictions if start <= each.start and each.end <= end)


def shifted(assessment: Assessment, shift: Callable[[Any], Any]) -> Assessment:
    """Return the assessment with its probabilities shifted, those of tokens excepted."""
    probability, claims = assessment.probability, assessment.claims
    return replace(
        assessment,
        probability=None if probability is None else float(shift(probability)),
        claims=claims and replace(claims, probabilities=shift(claims.probabilities)),
    )


def with_sentences(
    assessment: Assessment, after: Assessment, sentences: Sequence[int], encoded: Encoded, *, worse: bool
) -> Assessment:
    """Return the assessment with that of some sentences (their numbers) `after` another prompt, where they
    are more suspect there (`worse`), or less."""
    before = assessment
    if before.claims is None or after.claims is None or before.marks is None or after.marks is None:
        return assessment
    spans = encoded.sentences
    probabilities, marks = before.claims.probabilities.copy(), before.marks.probabilities.copy()
    contradictions, differences = list(before.contradictions), list(before.differences)
    for number in sentences:
        probability = after.claims.probabilities[number]
        if (probability <= probabilities[number]) if worse else (probability >= probabilities[number]):
            continue
        probabilities[number] = probability
        inside = tokens_in(encoded.response_offsets, [spans[number]])
        if len(after.marks.probabilities) == len(marks):
            marks[inside] = after.marks.probabilities[inside]
        contradictions = _with_those_in(spans[number], contradictions, after.contradictions)
        differences = _with_those_in(spans[number], differences, after.differences)
    claims = replace(before.claims, probabilities=probabilities)
    return replace(
        before,
        probability=before.probability if claims.highest is None else claims.highest,
        marks=replace(before.marks, probabilities=marks),
        claims=claims,
        contradictions=tuple(sorted(contradictions, key=lambda contradiction: contradiction.start)),
        differences=tuple(sorted(differences, key=lambda difference: difference.start)),
    )


def _with_those_in(span: tuple[int, int], before: list[P], after: Sequence[P]) -> list[P]:
    """Return what was found `before`, with what begins in the span taken from `after`."""
    start, end = span
    outside = [each for each in before if not start <= each.start < end]
    return outside + [each for each in after if start <= each.start < end]


def _statuses_of_claims(claims: Claims, threshold: float | None) -> list[Status]:
    """Return them by the probabilities of sentences: an aside states nothing unless it is suspect."""
    statuses = list[Status]()
    for probability, stating in zip(claims.probabilities, claims.stating, strict=True):
        if threshold is None:
            statuses.append("not judged")
        elif stating == "nothing":
            statuses.append("states nothing")
        elif probability >= threshold:
            statuses.append("unsupported")
        else:
            statuses.append("supported" if stating == "a claim" else "states nothing")
    return statuses


def _statuses_of_response(
    stating: Sequence[Stating],
    tokens: Sequence[Flags],
    relevance: Relevance | None,
    assessment: Assessment,
    threshold: float | None,
) -> list[Status]:
    """Return the statuses of sentences by a model that judges the response only."""
    statuses: list[Status] = [
        "not judged" if threshold is None else "supported" if kind == "a claim" else "states nothing"
        for kind in stating
    ]
    probability = assessment.probability
    flagged = probability is not None and threshold is not None and probability >= threshold
    read = [k for k, states in enumerate(stating) if states != "nothing" and tokens[k].any()]
    if not flagged or not read:
        return statuses
    suspect = read
    if relevance is not None:
        total, low = relevance.total, assessment.token_threshold
        smooth = smoothed(total)
        suspect = [k for k in read if (smooth[tokens[k]] < (-np.inf if low is None else low)).mean() >= 0.5]
        # Smoothed, short sentences beside each other are alike.
        suspect = suspect or [min(read, key=lambda k: float(total[tokens[k]].mean()))]
    for k in suspect:
        statuses[k] = "unsupported"
    return statuses


def _tokens_of(relevance: Relevance, start: int, end: int) -> Flags:
    """Return which of the tokens that relevance is of overlap some characters of the response."""
    return tokens_in(relevance.encoded.response_offsets, [(start, end)])


def _by_passage(relevance: Relevance | None, start: int, end: int) -> tuple[float, ...]:
    if relevance is None or relevance.by_segment is None:
        return ()
    inside = _tokens_of(relevance, start, end)
    if not inside.any():
        return ()
    return tuple(map(float, relevance.by_segment[FIRST_PASSAGE:, inside].mean(1)))


def _leading(by_passage: tuple[float, ...]) -> int | None:
    return int(np.argmax(by_passage)) if by_passage and max(by_passage) > 0 else None


def merged_spans(suspect: Flags, offsets: Sequence[tuple[int, int]], text: str) -> list[tuple[int, int]]:
    """Return the character spans of runs of suspect tokens: whole words, no white space around them."""
    spans: list[tuple[int, int]] = []
    running = False
    for flag, (first, last) in zip(suspect, offsets, strict=True):
        if not flag:
            running = False
            continue
        start, end = _whole_words(first, last, text)
        if start == end:
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
