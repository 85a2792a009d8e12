"""`Model`: what a detector does to one response. The kinds of detector differ in this alone."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self

from numpy.typing import NDArray

from lrp4rag.classifiers.card import Card
from lrp4rag.classifiers.ensemble import TokenScores
from lrp4rag.classifiers.verdict import Claims, Contradiction, Reason, TokenMarks, Verdict
from lrp4rag.features.parts import RELEVANCE
from lrp4rag.features.record import Record
from lrp4rag.features.replay import RelevanceReplay, Replay
from lrp4rag.lrp.flow import Flow
from lrp4rag.reader.encoding import Encoded, tokens_in
from lrp4rag.reader.reader import Reader
from lrp4rag.util.sentences import sentences_in

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Assessment:
    """What a model says of one response.

    * `probability`: that it is hallucinated, None where it states nothing; `shift` is what its known
      generator added to the log odds.
    * `marks`: the probabilities of its tokens, of a model that scores tokens; `scores` are their log odds.
    * `claims`: of its sentences, and `contradictions`: the values that a passage has otherwise, likewise.
    * `token_threshold`: smoothed relevance (in logits) below which tokens are suspect, of one that does not.
    """

    probability: float | None
    shift: float = 0.0
    marks: TokenMarks | None = None
    scores: TokenScores | None = None
    claims: Claims | None = None
    contradictions: tuple[Contradiction, ...] = ()
    token_threshold: float | None = None


def with_premise(
    found: Assessment, after: Assessment, sentences: Sequence[int], encoded: Encoded
) -> Assessment:
    """The same with what is said of some sentences (their numbers) after another question, where that makes
    them more suspect."""
    if found.claims is None or after.claims is None or found.marks is None or after.marks is None:
        return found
    spans = sentences_in(encoded.response)
    probabilities, marks = found.claims.probabilities.copy(), found.marks.probabilities.copy()
    highest, told = found.probability, list(found.contradictions)
    for number in sentences:
        if after.claims.probabilities[number] <= probabilities[number]:
            continue
        probabilities[number] = after.claims.probabilities[number]
        if found.claims.stating[number] != "nothing":
            highest = max(highest or 0.0, float(probabilities[number]))
        start, end = spans[number]
        inside = tokens_in(encoded.response_offsets, [(start, end)])
        if len(after.marks.probabilities) == len(marks):
            marks[inside] = after.marks.probabilities[inside]
        told = [one for one in told if not start <= one.start < end]
        told += [one for one in after.contradictions if start <= one.start < end]
    return replace(
        found,
        probability=highest,
        marks=replace(found.marks, probabilities=marks),
        claims=replace(found.claims, probabilities=probabilities),
        contradictions=tuple(sorted(told, key=lambda one: one.start)),
    )


class Model(Protocol):
    """A kind of detector, chosen once: by `FittedDetector.load`, from the kind of the card's input.

    A new kind is a subclass of this, which says how to `assess` a record; a subclass of `card.ModelInput`,
    which says what the card tells of it; and a line in `folder.MODELS`, so that it can be loaded.
    """

    dtype_matters: ClassVar[bool] = False
    """Whether a reader in another dtype than in training deserves a warning."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The parts of a store that it reads (`features.parts`)."""
        return (RELEVANCE,)

    @property
    def plain(self) -> bool:
        """Whether it reads what plain passes tell, and no relevance: outside of relevance mode."""
        return False

    def replay(self, reader: Reader, flow: Flow) -> Replay:
        """What reads the records that it assesses, where they have relevance."""
        return RelevanceReplay(reader, flow, self.needs)

    @abstractmethod
    def assess(self, record: Record) -> Assessment:
        """Raises `InputError` where the record lacks what the model reads."""

    def reasons(self, record: Record, verdict: Verdict) -> tuple[Reason, ...]:
        """The features that moved the verdict most, strongest first."""
        return ()

    def arrays(self) -> Arrays:
        """Everything that was learned and is not in the card; `load` reads it back."""
        return {}

    @classmethod
    def load(cls, card: Card, arrays: Arrays) -> Self:
        """Raises `InputError`, `KeyError`, `RuntimeError`, `TypeError` or `ValueError` for arrays of another
        model."""
        return cls()
