"""`assess`: run the checks of a policy on an answer, decide, and say it in the policy's words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lrp4rag.classifiers.verdict import FLAGGED
from lrp4rag.example import Example
from lrp4rag.guard.checks.check import CheckInput, Finding
from lrp4rag.guard.checks.registry import Checked, run_checks
from lrp4rag.guard.policy.decision import Decided, Measures, by_checks, decide, measure, strictest, unjudged
from lrp4rag.guard.policy.policy import WITHHELD, Policy, corrected, filled
from lrp4rag.guard.policy.reasons import CHECK_OF, row_of
from lrp4rag.report.decision import DecisionWords
from lrp4rag.source import Source
from lrp4rag.util.errors import InputError
from lrp4rag.util.text import one_line

if TYPE_CHECKING:
    from lrp4rag.classifiers.verdict import Contradiction, Sentence, Verdict
    from lrp4rag.judge import Detector, ExplainedVerdict

MOST_SOURCES = 3
MOST_CONTRADICTIONS = 3
"""Contradictions that a message has."""
LONGEST = 80
"""Characters of a source's name, or of a quotation."""
UNREMARKABLE = ("grounded", "verified", "no minimum", "history")
"""Kinds of findings that report nothing wrong."""


@dataclass(frozen=True, slots=True, eq=False)
class Assessment:
    """The decision on an answer, its grounds, and the words for the answer's reader; `policy` is the hash of
    the policy that decided."""

    policy: str
    decided: Decided
    measures: Measures
    checked: Checked
    closest: tuple[int, ...]
    """The passages that the answer rests on most, or that were retrieved with the highest scores."""
    message: str
    """The text in the place of a withheld answer, or under a served answer; may be empty."""
    below: str
    """The text under an answer of which a stream has released a part, which is not called withheld."""

    @property
    def withheld(self) -> bool:
        return self.decided.action in WITHHELD

    def shown(self, response: str) -> str:
        """Return the text that the reader of the answer gets."""
        if self.withheld:
            return self.message
        return f"{response.rstrip()}\n\n{self.message}" if self.message else response

    def record(self) -> dict[str, Any]:
        """Return the assessment as JSON values; passages count from 1."""
        return {
            "policy": self.policy,
            "action": self.decided.action,
            "reason": self.decided.reason,
            "rule": self.decided.rule,
            **self.measures.statuses,
            "faithfulness": self.measures.faithfulness,
            "fact_score": self.measures.facts,
            "message": self.message,
            "closest": [number + 1 for number in self.closest],
            "findings": [record_finding(finding) for finding in self.checked.every],
            "unavailable": dict(self.checked.unavailable),
        }

    def words(self) -> DecisionWords:
        """Return the decision as reports show it."""
        measures = {"faithfulness": self.measures.faithfulness, "facts": self.measures.facts}
        return DecisionWords(
            self.decided.action,
            self.decided.reason,
            ", ".join(f"{name} {value:.0%}" for name, value in measures.items() if value is not None),
            tuple(
                (finding.check, finding.words)
                for finding in self.checked.every
                if finding.kind not in UNREMARKABLE
            ),
            tuple(f"{name}: unavailable, {why}" for name, why in self.checked.unavailable.items()),
            self.message,
        )

    def redacted(self) -> dict[str, Any]:
        """Return the `record` without words of the answer."""
        record = self.record()
        del record["message"]
        return record | {"findings": [without_words(finding) for finding in record["findings"]]}


def record_finding(finding: Finding) -> dict[str, Any]:
    """Return a finding as JSON values; passages count from 1."""
    return {
        "check": finding.check,
        "kind": finding.kind,
        "words": finding.words,
        "start": finding.start,
        "end": finding.end,
        "passages": [number + 1 for number in finding.passages],
        "details": finding.details,
    }


def without_words(finding: dict[str, Any]) -> dict[str, Any]:
    """Return the record of a finding without the fields that may quote the answer."""
    return {name: finding[name] for name in ("check", "kind", "passages")}


def judge(detector: Detector, policy: Policy, example: Example) -> tuple[ExplainedVerdict, Assessment]:
    """Judge a response and decide on it. Raises `InputError` for what cannot be judged."""
    verdict = detector.judge(example)
    return verdict, assess(policy, example, verdict)


def assess(
    policy: Policy,
    example: Example,
    verdict: Verdict | None,
    *,
    now: datetime | None = None,
) -> Assessment:
    """Run the checks on an answer and decide. Without a verdict, the answer counts as not judged. Raises
    `InputError` for an example without a response."""
    if example.response is None:
        raise InputError("the example has no response", field="response")
    now = now or datetime.now(UTC)
    inputs = CheckInput(example.question, example.sources, example.response, verdict, now=now)
    checked = run_checks(policy.enabled_checks, inputs, budget=policy.budget)
    measures = measure(verdict, checked, example.response)
    return _worded(policy, example.sources, verdict, decide(policy, measures), measures, checked)


def assess_passages(policy: Policy, question: str, sources: tuple[Source, ...]) -> Assessment | None:
    """Decide on a question before an answer is written: withhold where the gate finds no passage that is fit
    to answer from, and the policy withholds then. Return None where an answer may be written."""
    checked = _gated(policy, question, sources)
    decided = by_checks(policy, checked, "null")
    if not decided or strictest(decided).action != "withhold":
        return None
    return _worded(policy, sources, None, strictest(decided), measure(None, checked, ""), checked)


def assess_unjudged(policy: Policy, question: str, sources: tuple[Source, ...]) -> Assessment:
    """Decide on an answer that cannot be judged, since there are no passages or no text: by the stricter of
    the policy's actions on unfit passages and on unjudged answers."""
    checked = _gated(policy, question, sources)
    decided = strictest([*by_checks(policy, checked, "null"), unjudged(policy)])
    return _worded(policy, sources, None, decided, measure(None, checked, ""), checked)


def _gated(policy: Policy, question: str, sources: tuple[Source, ...]) -> Checked:
    checks = {name: check for name, check in policy.enabled_checks.items() if name == CHECK_OF["null"]}
    return run_checks(checks, CheckInput(question, sources), budget=policy.budget)


def _worded(
    policy: Policy,
    sources: tuple[Source, ...],
    verdict: Verdict | None,
    decided: Decided,
    measures: Measures,
    checked: Checked,
) -> Assessment:
    """Add the closest sources and the policy's words to a decision."""
    closest = _closest(sources, verdict)
    contradictions = () if verdict is None else verdict.contradictions
    closest_sources = [sources[number] for number in closest]
    words = _Words(policy, decided, checked, closest_sources, contradictions, measures.flagged > 0)
    return Assessment(policy.hash, decided, measures, checked, closest, words.message(), words.below())


def _closest(sources: tuple[Source, ...], verdict: Verdict | None) -> tuple[int, ...]:
    """Return the passages that contradict most, then those on which most sentences rest (where no relevance
    was attributed, to which they are nearest), then those with the highest scores, then by their order; none
    without text."""
    contradicting = [] if verdict is None else [each.passage for each in verdict.contradictions]
    resting = [] if verdict is None else [*map(_resting_on, verdict.sentences)]

    def closeness(k: int) -> tuple[float, ...]:
        return contradicting.count(k), resting.count(k), sources[k].score or 0.0, -k

    candidates = (k for k, source in enumerate(sources) if source.text.strip())
    return tuple(sorted(candidates, key=closeness, reverse=True)[:MOST_SOURCES])


def _resting_on(sentence: Sentence) -> int | None:
    if sentence.passage is not None or sentence.nearest is None:
        return sentence.passage
    return sentence.nearest.passage


@dataclass(frozen=True, slots=True)
class _Words:
    """The message to the reader of an answer, in the policy's words."""

    policy: Policy
    decided: Decided
    checked: Checked
    closest: list[Source]
    contradictions: tuple[Contradiction, ...]
    flagged: bool

    def message(self) -> str:
        """Return the text in the place of the answer, or under it; empty where it is served."""
        action, texts = self.decided.action, self.policy.texts
        if action == "escalate":
            return self._filled(texts.escalated)
        if action != "withhold":
            return self.below()
        name = row_of(self.decided.reason).instead
        # Only the gate knows that no passage answers; by a band, whatever its reason, a passage may.
        if name == "gap" and self.decided.rule != "rules.null":
            name = "insufficient"
        return self._filled(getattr(texts, name))

    def below(self) -> str:
        """Return the text under what is released of the answer; empty where nothing is wrong."""
        if self.decided.action == "serve":
            return ""
        names = [row_of(self.decided.reason).below]
        if self.flagged and self.decided.reason not in FLAGGED:
            names.append("contradicted" if self.contradictions else "uncertain")
        return " ".join(self._filled(getattr(self.policy.texts, name)) for name in dict.fromkeys(names))

    def _filled(self, template: str) -> str:
        texts, findings_of = self.policy.texts, self.checked.of
        names = ", ".join(map(_quoted_name, self.closest))
        conflicts = [
            conflict for conflict in findings_of("conflicts", "conflict") if conflict.start is not None
        ]
        outdated = [finding.words for finding in findings_of("outdated", "outdated")]
        conditions = [
            f"“{one_line(str(omission.details.get('condition', '')), LONGEST)}”"
            for omission in findings_of("omissions", "omitted")
        ]
        contradictions = [corrected(texts.instead, contradiction) for contradiction in self.contradictions]
        values = {
            "sources": filled(texts.closest, {"sources": names}) if names else "",
            "contact": texts.contact,
            "sides": " ".join(conflict.words for conflict in conflicts),
            "outdated": " ".join(dict.fromkeys(outdated)),
            "condition": ", ".join(dict.fromkeys(conditions)),
            "contradictions": " ".join(list(dict.fromkeys(contradictions))[:MOST_CONTRADICTIONS]),
        }
        return filled(template, values)


def _quoted_name(source: Source) -> str:
    name = source.title or source.id or source.text
    version = f" ({one_line(source.version, LONGEST)})" if source.version else ""
    return f"“{one_line(name, LONGEST)}”{version}"
