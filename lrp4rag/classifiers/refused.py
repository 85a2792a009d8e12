"""Sentences that say that the passages lack what was asked for, judged by whether these have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from scipy.special import expit, logit

from lrp4rag.claims.refusals import Outcome, Refusal
from lrp4rag.classifiers.verdict import Assessment, Difference

SHIFTS: dict[Outcome, float] = {"there": 1.5, "absent": -1.0}
"""What it adds to the log odds of such a sentence that the passages have what it says to be missing, or that
they do not know a word of it."""


def with_refusals(
    assessment: Assessment, refusals: Mapping[int, Refusal], threshold: float, passages: Sequence[str]
) -> Assessment:
    """Return the assessment of a response, some sentences of which (by their numbers) say that something is
    missing. Where the passages have it, and the sentence is suspect at the `threshold`, their sentence is
    named; what contradicts one that is right is left out."""
    claims = assessment.claims
    if claims is None:
        return assessment
    probabilities = claims.probabilities.copy()
    contradictions, differences = list(assessment.contradictions), list(assessment.differences)
    for number, refusal in refusals.items():
        start, end, place = refusal.start, refusal.end, refusal.place
        shifted = float(expit(logit(probabilities[number]) + SHIFTS[refusal.outcome]))
        probabilities[number] = shifted
        if refusal.outcome == "absent":
            contradictions = [each for each in contradictions if not start <= each.start < end]
        if refusal.outcome == "absent" or shifted >= threshold:
            differences = [each for each in differences if not start <= each.start < end]
        if place is not None and shifted >= threshold:
            source = place.passage, place.passage_start, place.passage_end
            words = place.instead(passages)
            differences.append(Difference("answered", start, end, *source, words))
    claims = replace(claims, probabilities=probabilities)
    return replace(
        assessment,
        probability=assessment.probability if claims.highest is None else claims.highest,
        claims=claims,
        contradictions=tuple(contradictions),
        differences=tuple(sorted(differences, key=lambda each: each.start)),
    )
