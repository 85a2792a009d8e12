"""`decide`: the step from the measures of an answer to an action."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lrp4rag.classifiers.verdict import FLAGGED, STATING, Status
from lrp4rag.guard.checks.facts import fact_score
from lrp4rag.guard.checks.registry import Checked
from lrp4rag.guard.policy.policy import ACTIONS, Action, Policy
from lrp4rag.guard.policy.reasons import CHECK_OF, REASON_OF, Kind, Reason

if TYPE_CHECKING:
    from lrp4rag.classifiers.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Measures:
    """The measures of an answer that a policy decides on.

    * `judged`: whether there is a verdict. `probability`: that the response is hallucinated, None where it
      states nothing or was not judged. `hallucinated`: the verdict.
    * `statuses`: how many of its sentences are supported, contradicted and so on, as records have them.
    * `faithfulness`, `facts`: the shares of its sentences that are supported and of its facts that are
      grounded (0 to 1); None where it has none. They decide in bands only.
    * `found`: the kinds of the findings of checks. `unavailable`: the checks that did not finish.
    """

    judged: bool = True
    probability: float | None = None
    hallucinated: bool = False
    statuses: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(STATING, 0))
    faithfulness: float | None = None
    facts: float | None = None
    abstained: bool = False
    found: frozenset[Kind] = frozenset()
    unavailable: frozenset[str] = frozenset()

    @property
    def flagged(self) -> int:
        return sum(self.statuses[status] for status in FLAGGED)


def measure(verdict: Verdict | None, checked: Checked, response: str) -> Measures:
    """Measure an answer. A response without a word has nothing to judge: it counts as without a verdict."""
    kinds: frozenset[Kind] = frozenset(
        kind
        for kind, check in CHECK_OF.items()
        if any(kind != "conflict" or finding.start is not None for finding in checked.of(check, kind))
    )
    unavailable = frozenset(checked.unavailable)
    if verdict is None or verdict.threshold is None or not any(sign.isalnum() for sign in response):
        return Measures(judged=False, found=kinds, unavailable=unavailable)
    counts = Counter(sentence.status for sentence in verdict.sentences)
    statuses: dict[str, int] = {status: counts[status] for status in STATING}
    stating = sum(statuses.values())
    return Measures(
        probability=verdict.probability,
        hallucinated=bool(verdict.hallucinated),
        statuses=statuses,
        faithfulness=counts["supported"] / stating if stating else None,
        facts=fact_score(checked.findings.get("facts", ())),
        abstained=verdict.abstained or counts["not judged"] > 0,
        found=kinds,
        unavailable=unavailable,
    )


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision: the action, its reason, and the rule of the policy that decided."""

    action: Action
    reason: Reason
    rule: str


def decide(policy: Policy, measures: Measures) -> Decided:
    """Return the strictest decision by the findings of checks, the statuses of sentences, what could not be
    judged, and the band; of equally strict decisions, the first."""
    decisions = [
        *_by_rules(policy, measures, ("null",)),  # nothing to answer from explains what nothing supports
        *_by_claims(policy, measures.statuses, hallucinated=measures.hallucinated),
        *_without_verdict(policy, measures),
        *_by_rules(policy, measures),
        *_unfinished(policy, measures),
        *_by_share(policy, measures),
        Decided("serve", "grounded" if measures.statuses["supported"] else "states nothing", "verdict"),
    ]
    return strictest(decisions)


def strictest(decisions: Sequence[Decided]) -> Decided:
    """Return the strictest decision, the first of equally strict decisions. Raises `ValueError` for none."""
    return max(decisions, key=lambda decided: ACTIONS.index(decided.action))


def _without_verdict(policy: Policy, measures: Measures) -> Iterator[Decided]:
    if measures.abstained or not measures.judged:
        yield unjudged(policy, abstained=measures.abstained)


def unjudged(policy: Policy, *, abstained: bool = False) -> Decided:
    """Decide on an answer or a sentence without a verdict: the detector abstained, or could not judge it."""
    if abstained:
        return Decided(policy.abstained, "unlike training data", "abstained")
    return Decided(policy.unavailable, "unavailable", "unavailable")


def _by_claims(policy: Policy, counts: Mapping[str, int], *, hallucinated: bool = False) -> Iterator[Decided]:
    """Yield the decisions on an answer by the number of its sentences that have each status."""
    flagged = [status for status in FLAGGED if counts[status]]
    if hallucinated and not flagged:
        flagged = ["unsupported"]  # a verdict on the whole, of a detector that marks no sentence
    for status in flagged:
        yield Decided(getattr(policy.claims, status), status, f"claims.{status}")
    most = policy.claims.most
    if most is not None and sum(counts[status] for status in flagged) > counts["supported"]:
        yield Decided(most, flagged[0], "claims.most")


def _by_rules(
    policy: Policy, measures: Measures, kinds: Iterable[Kind] = tuple(CHECK_OF)
) -> Iterator[Decided]:
    """Yield the decisions on findings of some kinds."""
    for kind in kinds:
        action: Action | None = getattr(policy.rules, kind)
        if action is not None and CHECK_OF[kind] in policy.checks and kind in measures.found:
            yield Decided(action, REASON_OF[kind], f"rules.{kind}")


def _unfinished(policy: Policy, measures: Measures) -> Iterator[Decided]:
    """Yield a decision for each check that did not finish: it may have had a finding."""
    for check in sorted(measures.unavailable):
        if check in policy.checks:
            yield Decided(policy.unavailable, "unavailable", f"checks.{check}")


def _by_share(policy: Policy, measures: Measures) -> Iterator[Decided]:
    if not policy.bands or measures.faithfulness is None:
        return
    facts = measures.faithfulness if measures.facts is None else measures.facts
    for number, band in enumerate(policy.bands, start=1):
        if measures.faithfulness >= band.faithfulness and facts >= band.facts:
            yield Decided(band.action, band.reason, f"bands[{number}]")
            return


def of_sentence(policy: Policy, status: Status, counts: Mapping[Status, int]) -> Decided:
    """Decide on a suspect sentence of a stream: as on an answer of this sentence alone, or of most sentences
    suspect where most so far are. `counts` has the statuses of the sentences so far, itself among them."""
    most = sum(counts[flagged] for flagged in FLAGGED) > counts["supported"]
    alone = Counter[str]({status: 1, "supported": int(not most)})
    return strictest(list(_by_claims(policy, alone)))


def by_checks(policy: Policy, checked: Checked, *kinds: Kind) -> list[Decided]:
    """Return the decisions on findings of these kinds alone, and on checks that did not finish."""
    present = frozenset(kind for kind in kinds if checked.of(CHECK_OF[kind], kind))
    measures = Measures(found=present, unavailable=frozenset(checked.unavailable))
    return [*_by_rules(policy, measures), *_unfinished(policy, measures)]
