"""Sentences that rest on a passage about something else, judged without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from scipy.special import expit, logit

from lrp4rag.claims.borrowed import Borrowed
from lrp4rag.classifiers.verdict import Assessment, Difference, with_sentences
from lrp4rag.reader.encoding import Encoded

BORROWING = 1.0
"""What it adds to the log odds of a sentence, without the passage, that it rests on that one."""


def without_borrowed(
    assessment: Assessment,
    after: Assessment,
    borrowed: Mapping[int, Borrowed],
    encoded: Encoded,
    threshold: float,
    passages: Sequence[str],
) -> Assessment:
    """Return the assessment with that of sentences (by their numbers) `after` the prompt without the passages
    that they borrow from, where it is worse. From the `threshold` on it names what these say of another."""
    if after.claims is None:
        return assessment
    numbers, probabilities = [*borrowed], after.claims.probabilities.copy()
    probabilities[numbers] = expit(logit(probabilities[numbers]) + BORROWING)
    after = replace(after, claims=replace(after.claims, probabilities=probabilities))
    assessment = with_sentences(assessment, after, numbers, encoded, worse=True)
    suspect = {number: source for number, source in borrowed.items() if probabilities[number] >= threshold}
    spans = [encoded.sentences[number] for number in suspect]
    differences = [
        difference
        for difference in assessment.differences
        if not any(start <= difference.start < end for start, end in spans)
    ]
    differences += [_difference(source, passages) for source in suspect.values()]
    return replace(assessment, differences=tuple(sorted(differences, key=lambda each: each.start)))


def _difference(borrowed: Borrowed, passages: Sequence[str]) -> Difference:
    start, end = borrowed.passage_start, borrowed.passage_end
    words = passages[borrowed.passage][start:end]
    return Difference(
        "said of another", borrowed.start, borrowed.end, borrowed.passage, start, end, words, borrowed.subject
    )
