"""`Passages` and `Compared`: what passages say of each sentence of an answer, in words and in numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lrp4rag.claims.absence import compare_absence
from lrp4rag.claims.claim import Subject
from lrp4rag.claims.compare import Comparer, Comparison
from lrp4rag.claims.evidence import Evidence
from lrp4rag.claims.grounds import Alignment, Counterpart, Grounds
from lrp4rag.claims.index import Index
from lrp4rag.claims.negation import compare_signs
from lrp4rag.claims.places import Place
from lrp4rag.claims.restrictions import LeftOut, compare_restrictions
from lrp4rag.claims.signed import Word
from lrp4rag.claims.value import Value
from lrp4rag.claims.words import content_words

_OF_CLAUSES = ("best", "missing", "here", "here share", "three")


def compare_novelty(grounds: Grounds, sentence: Place) -> dict[str, float]:
    """Return features, by name, of the words of a sentence that neither a passage nor the question has, nor
    one of the same sense."""
    words = sentence.content
    if not words or not grounds.clauses:
        return {"new words": float(len(words))}
    question_words = {word.base for word in grounds.question_words}
    unknown = [word for word in words if not grounds.related(word.base)]
    unasked = [word for word in unknown if word.base not in question_words]
    aligned = grounds.aligned(words)
    here = _words_at_best(grounds, aligned, words)
    features = {
        "words": float(len(words)),
        "new words": float(len(unknown)),
        "new unasked": float(len(unasked)),
        "new share": len(unasked) / len(words),
        "whole best": float(aligned.scores.max()),
        "whole known": float(aligned.known_scores.max()),
        "whole missing": aligned.missing,
        "whole here": float(here),
        "whole here share": here / len(words),
        "capital new": float(sum(sentence.source[word.start].isupper() for word in unasked)),
    }
    rows = []
    for clause_words in (clause.content for clause in sentence.clauses if len(clause.content) > 1):
        aligned = grounds.aligned(clause_words)
        here = _words_at_best(grounds, aligned, clause_words)
        three = float(np.sort(aligned.scores)[-3:].mean())
        rows.append((float(aligned.scores.max()), aligned.missing, here, here / len(clause_words), three))
    if rows:
        for name, column in zip(_OF_CLAUSES, np.array(rows).T, strict=True):
            features[f"clause {name} min"] = float(column.min())
            features[f"clause {name} max"] = float(column.max())
    return features


def _words_at_best(grounds: Grounds, aligned: Alignment, words: Sequence[Word]) -> int:
    """Count the words that stand in the sentence of the passages which has most of them."""
    return len(grounds.matches(words, aligned.places[0].content))


Span = tuple[int, int]


class Passages:
    """Passages, as answers to a `question` are compared with them. Each property is computed once, when it is
    first needed."""

    def __init__(
        self, question: str, passages: Sequence[str], tick: Callable[[], None] = lambda: None
    ) -> None:
        self.question, self.texts, self._tick = question, tuple(passages), tick

    @cached_property
    def index(self) -> Index:
        """Their sentences."""
        return Index(self.texts, self._tick)

    @cached_property
    def asked(self) -> list[float]:
        """How similar each sentence is to the question."""
        return self.index.similarities(content_words(self.question))

    @cached_property
    def comparer(self) -> Comparer:
        """Their values, and the subjects of these."""
        return Comparer(self.question, self.index)

    @cached_property
    def grounds(self) -> Grounds:
        """Their clauses, and which words these deny."""
        return Grounds(self.question, self.index)


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """Characters `start` to `end` of an answer, a sentence, beside the passages.

    * `values`: what the passages have in the place of each of its values.
    * `denials`: what they deny of it, or it of them; `left_out`: conditions of theirs that it leaves out; the
      surest first.
    * `answered`: where it says that the passages lack something, what may answer it.
    * `home`: the clause of the passages that says most of it, its subject left out; None without one.
    * `features`: numbers by name; one that is missing is 0.
    """

    start: int
    end: int
    values: tuple[Comparison, ...]
    denials: tuple[Counterpart, ...]
    left_out: tuple[LeftOut, ...]
    answered: Counterpart | None
    home: Evidence | None
    features: Mapping[str, float]


def compare_answer(passages: Passages, answer: str, sentences: Sequence[Span]) -> list[Compared]:
    """Compare each sentence of an answer with the passages. A result does not depend on the sentences that
    follow: it is the same while the answer is being written."""
    return [step.compared for step in compare_further(passages, answer, sentences)]


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A sentence `compared`, and what the next ones need: the base forms of its words, its values, the
    subject of its last clause, and how much of it each passage says; the last two are None without a
    claim."""

    compared: Compared
    words: frozenset[str]
    values: tuple[Value, ...] = ()
    subject: Subject | None = None
    passages: NDArray[np.float64] | None = None


def compare_further(
    passages: Passages, answer: str, sentences: Sequence[Span], earlier: Sequence[Step] = ()
) -> Iterator[Step]:
    """Compare the sentences of an answer that follow the `earlier` ones with the passages."""
    grounds, comparer = passages.grounds, passages.comparer
    answer_words = set[str]().union(*(step.words for step in earlier))
    values = [value for step in earlier for value in step.values]
    before = [step.passages for step in earlier if step.passages is not None]
    subject = next((step.subject for step in reversed(earlier) if step.subject is not None), None)
    for start, end in sentences[len(earlier) :]:
        sentence = Place(0, start, end, answer, comparer.around)
        words = frozenset(word.base for word in sentence.content)
        answer_words |= words
        signs, denials = compare_signs(grounds, sentence)
        limits, left_out = compare_restrictions(grounds, sentence, answer_words)
        absence, answered = compare_absence(grounds, sentence)
        groups = {
            "sign": signs,
            "limit": limits,
            "absence": absence,
            "new": compare_novelty(grounds, sentence),
        }
        comparisons: tuple[Comparison, ...] = ()
        home, new_values = None, tuple[Value, ...]()
        slots = next(iter(comparer.compare([sentence], values, subject)), None)
        if slots is not None:
            home, subject = slots.home, slots.claims[-1].subject
            groups |= {"words": slots.clauses(), "subject": slots.subject(before)}
            comparisons = tuple(slots.comparisons())
            new_values = tuple(slots.every[len(values) :])
            values += new_values
            before.append(slots.passages)
        features = {
            f"{group}: {name}": value
            for group, numbers in groups.items()
            for name, value in numbers.items()
            if math.isfinite(value)
        }
        compared = Compared(
            start, end, comparisons, tuple(denials), tuple(left_out), answered, home, features
        )
        if slots is None:
            yield Step(compared, words)
        else:
            yield Step(compared, words, new_values, subject, slots.passages)
