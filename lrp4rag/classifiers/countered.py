"""Sentences that passages support less than their counter-claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scipy.special import expit, logit

from lrp4rag.claims.counterclaims import CounterClaim
from lrp4rag.classifiers.contradiction import added, denied, exchanged, with_clauses
from lrp4rag.classifiers.verdict import Assessment

MARGIN = 1.0
"""By how much, in log odds, a counter-claim must be the better supported one for its sentence to be
contradicted."""

BY_KIND = {"opposite": 0.5, "exchange": -0.25, "unit": 0.5, "value": -0.2}
"""What is added to the margin of kinds of counter-claims: an opposite phrase is evidence by itself, as is the
same number of another unit; words in the place of others may be of one sense: "tablet", "pill"; and another
value may follow from several."""

CONTRADICT = {"addition": added} | dict.fromkeys(("exchange", "unit", "value"), exchanged)
"""What names the contradiction of a kind; `denied` names those of the others."""

SAID = 1.5
"""The margin of a counter-claim that the passages say in a clause of the same words."""


def margin(own: float, counter_probability: float | None, counter: CounterClaim) -> float | None:
    """Return by how much, in log odds, a sentence is more suspect than its counter-claim, by their
    probabilities; None where that of the counter-claim is not known. It is `SAID` where passages say that."""
    if counter.is_said:
        return SAID
    if counter_probability is None:
        return None
    return float(logit(own)) - float(logit(counter_probability)) + BY_KIND.get(counter.kind, 0.0)


def with_counter_claim(
    assessment: Assessment,
    number: int,
    own: float,
    counter: CounterClaim,
    counter_probability: float | None,
    threshold: float,
    response: str,
    sentence: tuple[int, int],
    passages: Sequence[str],
) -> Assessment:
    """Return the assessment of a response, whose sentence `number` is as suspect as its counter-claim is
    better supported. `sentence` are its characters, `own` is its probability by itself; the counter-claim has
    `counter_probability` in its place (None: not known). From `MARGIN` on the sentence is flagged at the
    `threshold`, and contradicted. Values of it that the reader prefers to the passages' are no reason: it was
    not suspect for them."""
    claims = assessment.claims
    if claims is None:
        return assessment
    by = margin(own, counter_probability, counter)
    if by is None or not by >= MARGIN:
        return assessment
    probabilities = claims.probabilities.copy()
    probabilities[number] = max(probabilities[number], expit(logit(threshold) + by - MARGIN))
    contradict = CONTRADICT.get(counter.kind, denied)
    contradiction = contradict(response, passages, counter.denial)
    start, end = sentence
    others = (
        value
        for value in assessment.contradictions
        if not start <= value.start < end or (value.margin or 0.0) >= 0
    )
    return replace(
        assessment,
        probability=max(assessment.probability or 0.0, float(probabilities[number])),
        claims=replace(claims, probabilities=probabilities),
        contradictions=with_clauses(others, [contradiction]),
    )
