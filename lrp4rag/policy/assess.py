"""`assess`: run the checks of a policy on an answer, decide, and say it in the policy's words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lrp4rag.checks.check import CheckInput, Finding
from lrp4rag.checks.facts import fact_score, stated
from lrp4rag.checks.registry import Checked, run_checks
from lrp4rag.errors import InputError
from lrp4rag.example import Example
from lrp4rag.policy.decide import CHECK_OF, Decided, Kind, Measures, decide, graver, rule_of
from lrp4rag.policy.policy import WITHHELD, Policy, Reason
from lrp4rag.policy.texts import filled
from lrp4rag.source import Source
from lrp4rag.text import one_line

if TYPE_CHECKING:
    from lrp4rag.classifiers.verdict import Sentence, Verdict

MOST_SOURCES = 3
LONGEST = 80
"""Characters of a source's name, or of what is quoted."""


@dataclass(frozen=True, slots=True, eq=False)
class Assessment:
    """What is done with an answer, what that rests on, and what its reader is told; `policy` is the hash of
    the policy that says so."""

    policy: str
    decided: Decided
    measures: Measures
    checked: Checked
    closest: tuple[int, ...]
    """The passages that the answer rests on most, or that were retrieved with the highest scores."""
    message: str
    """In the place of an answer that is withheld, or under one that is served; empty where there is nothing
    to say."""

    @property
    def withheld(self) -> bool:
        return self.decided.action in WITHHELD

    def shown(self, response: str) -> str:
        """What the reader of the answer gets."""
        if self.withheld:
            return self.message
        return f"{response.rstrip()}\n\n{self.message}" if self.message else response

    def record(self) -> dict[str, Any]:
        """JSON values; passages count from 1."""
        return {
            "policy": self.policy,
            "action": self.decided.action,
            "reason": self.decided.reason,
            "rule": self.decided.rule,
            "faithfulness": self.measures.faithfulness,
            "fact_score": self.measures.facts,
            "message": self.message,
            "closest": [number + 1 for number in self.closest],
            "findings": [record_finding(one) for one in self.checked.every],
            "unavailable": dict(self.checked.unavailable),
        }

    def told(self) -> dict[str, Any]:
        """The same for whoever gets the answer: what is withheld is quoted nowhere."""
        names = ("check", "kind", "passages")
        found = self.record()
        del found["message"]
        return found | {"findings": [{name: one[name] for name in names} for one in found["findings"]]}


def record_finding(one: Finding) -> dict[str, Any]:
    """JSON values; passages count from 1."""
    return {
        "check": one.check,
        "kind": one.kind,
        "words": one.words,
        "start": one.start,
        "end": one.end,
        "passages": [number + 1 for number in one.passages],
        "details": one.details,
    }


def assess(
    policy: Policy,
    example: Example,
    verdict: Verdict | None,
    *,
    abstained: bool = False,
    now: datetime | None = None,
) -> Assessment:
    """Without a verdict, the answer could not be judged; `abstained` says that a verdict is to count as none.
    Raises `InputError` for an example without a response."""
    if example.response is None:
        raise InputError("the example has no response", field="response")
    given = CheckInput(
        example.question, example.sources, example.response, verdict, now=now or datetime.now(UTC)
    )
    checked = run_checks(policy.made, given, budget=policy.budget)
    measures = measure(verdict, checked, example.response)
    if abstained:
        measures = replace(measures, abstained=True)
    return _worded(policy, example.sources, verdict, decide(policy, measures), measures, checked)


def assess_passages(
    policy: Policy, question: str, sources: tuple[Source, ...], *, now: datetime | None = None
) -> Assessment | None:
    """What is said in the place of an answer, before one is written: where the gate finds no passage that is
    fit to answer from, and the policy withholds then. None where an answer may be written."""
    checked = _gated(policy, question, sources, now)
    decided = rule_of(policy, checked, "null")
    if decided is None or decided.action != "withhold":
        return None
    return _worded(policy, sources, None, decided, measure(None, checked, ""), checked)


def assess_unjudged(
    policy: Policy, question: str, sources: tuple[Source, ...], *, now: datetime | None = None
) -> Assessment:
    """Of an answer that cannot be judged, since nothing was retrieved, or nothing was written: the graver of
    what the policy says of passages that are not fit and of what is unavailable."""
    checked = _gated(policy, question, sources, now)
    decided = Decided(policy.unavailable, "unavailable", "unavailable")
    ruled = rule_of(policy, checked, "null")
    if ruled is not None and not graver(decided, ruled):
        decided = ruled
    return _worded(policy, sources, None, decided, measure(None, checked, ""), checked)


def _gated(policy: Policy, question: str, sources: tuple[Source, ...], now: datetime | None) -> Checked:
    checks = {name: check for name, check in policy.made.items() if name == CHECK_OF["null"]}
    given = CheckInput(question, sources, now=now or datetime.now(UTC))
    return run_checks(checks, given, budget=policy.budget)


def _worded(
    policy: Policy,
    sources: tuple[Source, ...],
    verdict: Verdict | None,
    decided: Decided,
    measures: Measures,
    checked: Checked,
) -> Assessment:
    """What was decided, with the closest sources and the policy's words."""
    closest = _closest(sources, verdict)
    message = _message(policy, decided, checked, [sources[number] for number in closest])
    return Assessment(policy.hash, decided, measures, checked, closest, message)


def measure(verdict: Verdict | None, checked: Checked, response: str) -> Measures:
    """What the policy decides on."""
    found: frozenset[Kind] = frozenset(
        kind
        for kind, check in CHECK_OF.items()
        if any(kind != "conflict" or one.start is not None for one in checked.of(check, kind))
    )
    missing = frozenset(checked.unavailable)
    if verdict is None:
        return Measures(None, found=found, unavailable=missing)
    return Measures(
        verdict.probability,
        faithfulness(verdict, response),
        fact_score(checked.findings.get("facts", ())),
        suspect=bool(verdict.hallucinated) or any(one.suspect for one in verdict.sentences),
        abstained=verdict.abstained,
        found=found,
        unavailable=missing,
    )


def faithfulness(verdict: Verdict, response: str) -> float | None:
    """The share of the sentences that are grounded, of those that state something; a suspect one states
    something, whatever its form. None where none does."""
    stating = stated(response)
    counted = [one.suspect for one in verdict.sentences if one.suspect or _is_among(one, stating)]
    return 1 - sum(counted) / len(counted) if counted else None


def _is_among(sentence: Sentence, spans: list[tuple[int, int]]) -> bool:
    return any(sentence.start < end and start < sentence.end for start, end in spans)


def _closest(sources: tuple[Source, ...], verdict: Verdict | None) -> tuple[int, ...]:
    """What sentences rest on, then the best scores; unscored passages in their order."""
    rests = [] if verdict is None else [one.passage for one in verdict.sentences if one.passage is not None]
    order = sorted(range(len(sources)), key=lambda k: (-rests.count(k), -(sources[k].score or 0.0), k))
    return tuple(order[:MOST_SOURCES])


TEXT_OF: dict[Reason, str] = {
    "suspect": "insufficient",
    "grounded": "insufficient",
    "insufficient evidence": "insufficient",
    "knowledge gap": "gap",
    "conflict": "insufficient",
    "outdated source": "insufficient",
    "fabricated citation": "fabricated",
    "misattributed citation": "escalated",
    "disguised text": "escalated",
    "planted instructions": "escalated",
    "omitted condition": "insufficient",
    "unlike training data": "unlike",
    "unavailable": "unavailable",
}
"""Of a policy's texts, that in the place of an answer that is withheld for a reason."""


def _message(policy: Policy, decided: Decided, checked: Checked, closest: list[Source]) -> str:
    texts = policy.texts
    names = ", ".join(_named(source) for source in closest)
    values: dict[str, Callable[[], str]] = {
        "sources": lambda: filled(texts.closest, {"sources": names}) if names else "",
        "contact": lambda: texts.contact,
        "sides": lambda: _sides(checked.of("conflicts", "conflict")),
        "outdated": lambda: " ".join(dict.fromkeys(one.words for one in checked.of("outdated", "outdated"))),
        "condition": lambda: _conditions(checked.of("omissions", "omitted")),
    }
    if decided.action == "escalate":
        template = texts.escalated
    elif decided.action == "withhold":
        template = getattr(texts, TEXT_OF[decided.reason])
    elif decided.reason == "conflict":
        template = texts.conflict
    elif decided.reason == "outdated source":
        template = texts.outdated
    elif decided.reason == "omitted condition":
        template = texts.omitted
    else:
        template = texts.uncertain if decided.action != "serve" else ""
    return filled(template, {name: value() for name, value in values.items()})


def _named(source: Source) -> str:
    name = source.title or source.id or source.text
    version = f" ({one_line(source.version, LONGEST)})" if source.version else ""
    return f"“{one_line(name, LONGEST)}”{version}"


def _sides(findings: list[Finding]) -> str:
    return " ".join(one.words for one in findings if one.start is not None)


def _conditions(findings: list[Finding]) -> str:
    quoted = [f"“{one_line(str(one.details.get('condition', '')), LONGEST)}”" for one in findings]
    return ", ".join(dict.fromkeys(quoted))
