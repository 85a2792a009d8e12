"""`decide`: from what was measured of an answer to what is done with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lrp4rag.checks.registry import Checked
from lrp4rag.policy.policy import ACTIONS, Action, Policy, Reason

Kind = Literal[
    "null", "fabricated", "misattributed", "disguised", "planted", "conflict", "outdated", "omitted"
]
CHECK_OF: dict[Kind, str] = {
    "null": "retrieval",
    "fabricated": "citations",
    "misattributed": "citations",
    "disguised": "disguise",
    "planted": "planted",
    "conflict": "conflicts",
    "outdated": "outdated",
    "omitted": "omissions",
}
REASON_OF: dict[Kind, Reason] = {
    "null": "knowledge gap",
    "fabricated": "fabricated citation",
    "misattributed": "misattributed citation",
    "disguised": "disguised text",
    "planted": "planted instructions",
    "conflict": "conflict",
    "outdated": "outdated source",
    "omitted": "omitted condition",
}


@dataclass(frozen=True, slots=True)
class Measures:
    """What a policy decides on.

    * `probability` that the response is hallucinated; None where there is no verdict.
    * `faithfulness`, `facts`: the shares of its sentences and of its facts that are grounded (0 to 1); None
      where it has none.
    * `suspect`: whether any of it is, by the detector's thresholds.
    * `found`: what checks found, and `unavailable` the checks that did not finish.
    """

    probability: float | None
    faithfulness: float | None = None
    facts: float | None = None
    suspect: bool = False
    abstained: bool = False
    found: frozenset[Kind] = frozenset()
    unavailable: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Decided:
    """What is done, and why; `rule` names the rule of the policy that decided."""

    action: Action
    reason: Reason
    rule: str


def decide(policy: Policy, measures: Measures) -> Decided:
    """What checks found decides first, then the probability, then the bands; what is left out last, where it
    is graver than the band. Without a verdict, the graver of what checks found and of what the policy says of
    that."""
    kinds: tuple[Kind, ...] = (
        "null",
        "fabricated",
        "misattributed",
        "disguised",
        "planted",
        "conflict",
        "outdated",
    )
    ruled = next((one for kind in kinds if (one := _by_rule(policy, measures, kind)) is not None), None)
    if (none := _without_verdict(policy, measures)) is not None:
        return ruled if ruled is not None and graver(ruled, none) else none
    if ruled is not None:
        return ruled
    found = _by_share(policy, measures)
    omitted = _by_rule(policy, measures, "omitted")
    return omitted if omitted is not None and graver(omitted, found) else found


def _without_verdict(policy: Policy, measures: Measures) -> Decided | None:
    if measures.abstained and policy.abstained != "serve":
        return Decided(policy.abstained, "unlike training data", "abstained")
    if measures.probability is None:
        return Decided(policy.unavailable, "unavailable", "unavailable")
    return None


def _by_rule(policy: Policy, measures: Measures, kind: Kind) -> Decided | None:
    action: Action | None = getattr(policy.rules, kind)
    check = CHECK_OF[kind]
    if action is None or check not in policy.checks:
        return None
    if kind in measures.found:
        return Decided(action, REASON_OF[kind], f"rules.{kind}")
    # What could not be looked for may be there.
    return (
        Decided(policy.unavailable, "unavailable", f"checks.{check}")
        if check in measures.unavailable
        else None
    )


def _by_share(policy: Policy, measures: Measures) -> Decided:
    assert measures.probability is not None
    if policy.withhold_from is not None and measures.probability >= policy.withhold_from:
        return Decided("withhold", "insufficient evidence", "withhold_from")
    if "facts" in measures.unavailable and any(band.facts for band in policy.bands):
        return Decided(policy.unavailable, "unavailable", "checks.facts")
    # What states nothing has no shares: it is grounded unless the detector suspects it.
    nothing = 0.0 if measures.suspect else 1.0
    faithfulness = nothing if measures.faithfulness is None else measures.faithfulness
    facts = faithfulness if measures.facts is None else measures.facts
    for number, band in enumerate(policy.bands, start=1):
        if faithfulness >= band.faithfulness and facts >= band.facts:
            return Decided(band.action, band.reason, f"bands[{number}]")
    raise AssertionError("the last band takes all")


def graver(one: Decided, other: Decided) -> bool:
    """Whether the one is graver than the other."""
    return ACTIONS.index(one.action) > ACTIONS.index(other.action)


OF_SENTENCES: tuple[Kind, ...] = ("fabricated", "misattributed", "disguised", "planted")
"""What is looked for in each sentence of a stream."""


def rule_of(policy: Policy, checked: Checked, *kinds: Kind) -> Decided | None:
    """What the policy says where checks found one of these kinds, without looking at anything else: the first
    kind decides. None where nothing is wrong."""
    found = frozenset(kind for kind in kinds if checked.of(CHECK_OF[kind], kind))
    measures = Measures(None, found=found, unavailable=frozenset(checked.unavailable))
    return next((one for kind in kinds if (one := _by_rule(policy, measures, kind)) is not None), None)
