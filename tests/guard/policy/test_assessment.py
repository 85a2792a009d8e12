"""An answer goes through the checks of a policy, and its reader is told what is done with it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lrp4rag.claims.nearest import Nearest
from lrp4rag.classifiers.verdict import Contradiction, Sentence, SuspectSpan, Verdict
from lrp4rag.example import Example
from lrp4rag.guard.checks import registry
from lrp4rag.guard.checks.check import CheckInput, Finding
from lrp4rag.guard.policy import Policy, assess
from lrp4rag.guard.policy.assessment import assess_unjudged
from lrp4rag.source import Source
from lrp4rag.util.errors import InputError
from lrp4rag.util.sentences import sentences_in

QUESTION = "How long is parental leave?"
NOW = datetime(2026, 1, 15, tzinfo=UTC)


def verdict_on(response: str, *wrong: str, instead: str | None = None) -> Verdict:
    """Sentences and spans that hold one of some words are unsupported, or contradicted by the first passage,
    which has something `instead`."""
    sentences = []
    for start, end in sentences_in(response):
        bad = any(word in response[start:end] for word in wrong)
        status = "supported" if not bad else "unsupported" if instead is None else "contradicted"
        score = 0.9 if bad else 0.05
        sentences.append(Sentence(start, end, response[start:end], None, (), None, status, score))
    spans = []
    for word in wrong:
        start = response.index(word)
        told = (
            () if instead is None else (Contradiction(start, start + len(word), word, instead, 0, 0, 1, 3.0),)
        )
        spans.append(SuspectSpan(start, start + len(word), word, None, 0.9, 0, told))
    return Verdict(0.9 if wrong else 0.05, 0.5, None, None, tuple(spans), tuple(sentences))


def shown(
    passages: list[Source],
    response: str,
    *wrong: str,
    policy: Policy | None = None,
    instead: str | None = None,
):
    example = Example(QUESTION, passages, response)
    return assess(policy or Policy(), example, verdict_on(response, *wrong, instead=instead), now=NOW)


def test_a_grounded_answer_is_served_as_it_is() -> None:
    response = "Parental leave is 16 weeks. It is paid in full."
    found = shown([Source("Parental leave is 16 weeks, paid in full.")], response)
    assert (found.decided.action, found.measures.faithfulness, found.measures.facts) == ("serve", 1.0, 1.0)
    assert found.shown(response) == response


def test_16_against_18_weeks() -> None:
    """The only sentence is wrong: it is withheld, with what the answer and the passage say."""
    source = Source("Parental leave is 16 weeks.", title="Leave Policy", version="3.1")
    response = "Parental leave is 18 weeks."
    found = shown([source], response, "18 weeks", instead="16 weeks")
    assert (found.decided.action, found.decided.reason) == ("withhold", "contradicted")
    assert found.shown(response) == found.message
    assert "The answer says “18 weeks”; passage 1 says “16 weeks”." in found.message
    assert "“Leave Policy” (3.1)" in found.message


def test_documents_that_answer_are_not_said_to_be_silent() -> None:
    """Only the gate knows that no passage answers; under a band of that name, something may."""
    silent = "The available documents do not answer this question."
    bands = [{"action": "withhold", "reason": "knowledge gap"}]
    for policy in (Policy(), Policy.model_validate({"bands": bands})):
        found = shown([Source("Leave is 16 weeks.")], "Leave is 18 weeks.", "18 weeks", policy=policy)
        assert found.withheld
        assert silent not in found.message
    found = shown([Source("Leave is 16 weeks.", expires="2020-01-01")], "Leave is 16 weeks.")
    assert found.message.startswith(silent)
    assert (found.decided.action, found.decided.rule) == ("withhold", "rules.null")


def test_a_contradicted_value_among_right_ones_is_served_with_the_passage_s() -> None:
    response = "Leave is 18 weeks. It is paid in full."
    found = shown([Source("Leave is 16 weeks, paid in full.")], response, "18 weeks", instead="16 weeks")
    assert (found.decided.action, found.decided.reason) == ("disclose", "contradicted")
    assert found.shown(response).startswith(response)
    assert "passage 1 says “16 weeks”" in found.shown(response)


@pytest.mark.parametrize("response", ["\u200b", "\ufeff", "```\n```", "...", "\U0001f642"])
def test_what_has_no_word_has_no_verdict(response: str) -> None:
    found = shown([Source("Leave is 16 weeks.")], response)
    assert (found.decided.action, found.decided.reason) == ("withhold", "unavailable")


def test_an_answer_in_the_middle_is_marked_as_uncertain() -> None:
    response = "Leave is 16 weeks. It is paid in full. Managers decide on it. It starts on 3 May."
    found = shown([Source("Leave is 16 weeks, paid in full. Managers decide on it.")], response, "3 May")
    assert (found.decided.action, found.measures.faithfulness) == ("mark", 0.75)
    assert found.shown(response) == f"{response}\n\n{Policy().texts.uncertain}"


def test_two_versions_of_a_policy_are_disclosed() -> None:
    """With their versions and dates."""
    old = Source("Parental leave is 12 weeks.", title="Leave Policy", version="2.8", effective="2023-01-01")
    new = Source("Parental leave is 16 weeks.", title="Leave Policy", version="3.1", effective="2024-01-01")
    response = "Parental leave is 16 weeks."
    found = shown([old, new], response)
    assert (found.decided.action, found.decided.reason) == ("disclose", "conflict")
    assert response in found.shown(response)
    assert all(words in found.message for words in ("2.8", "3.1", "12 weeks", "16 weeks"))


def test_a_condition_that_is_left_out() -> None:
    source = Source(
        "Employees may work remotely up to 3 days per week, subject to manager approval and documentation."
    )
    response = "Employees may work remotely up to 3 days per week."
    assert shown([source], response).decided.action == "serve"
    found = shown([source], response, policy=Policy(rules={"omitted": "mark"}))
    assert (found.decided.action, found.decided.reason) == ("mark", "omitted condition")
    assert "subject to manager approval and documentation" in found.message


def test_a_check_has_its_budget_and_may_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(registry.Facts):
        def __call__(self, given: CheckInput) -> list[Finding]:
            while True:
                given.tick()

    class Broken(registry.Facts):
        def __call__(self, given: CheckInput) -> list[Finding]:
            raise RuntimeError("secret words")

    for kind, words in (
        (Slow, "not done in 0.01 s"),
        (Broken, "this check failed on this answer (RuntimeError)"),
    ):
        monkeypatch.setitem(registry.CHECKS, "facts", kind)
        found = shown([Source("It is.")], "It is.", policy=Policy(budget=0.01, checks={"facts": {}}))
        assert (found.decided.action, found.decided.rule) == ("withhold", "checks.facts")
        assert words in found.record()["unavailable"]["facts"]
        assert "secret" not in str(found.record())


def test_an_answer_without_a_verdict_is_unavailable() -> None:
    example = Example(QUESTION, ["Leave is 16 weeks."], "Leave is 16 weeks.")
    assert assess(Policy(), example, None).decided.reason == "unavailable"
    with pytest.raises(InputError, match="response"):
        assess(Policy(), Example(QUESTION, ["Leave is 16 weeks."]), None)


def test_texts_are_the_policy_s() -> None:
    texts = {"insufficient": "Dazu sagt kein Dokument etwas. {contact}", "contact": "Fragen Sie Frau Li."}
    policy = Policy.model_validate({"texts": texts})
    found = shown([Source("Leave is 16 weeks.")], "Leave is 18 weeks.", "18 weeks", policy=policy)
    assert found.message == "Dazu sagt kein Dokument etwas. Fragen Sie Frau Li."


@pytest.mark.parametrize(
    ("instead", "resting", "closest"),
    [
        (None, (None, None), (2, 3, 0)),  # no relevance was attributed: the nearest two, then the first
        (None, (3, 3), (3, 0, 1)),
        ("16 weeks", (3, 3), (0, 3, 1)),  # passage 1 contradicts
    ],
)
def test_the_sources_named_are_those_that_the_answer_was_compared_with(
    instead: str | None, resting: tuple[int | None, ...], closest: tuple[int, ...]
) -> None:
    sources = [Source(f"Leave is {weeks} weeks.") for weeks in (16, 20, 30, 40)]
    response = "Leave is 18 weeks. It may be split."
    verdict = verdict_on(response, "18 weeks", instead=instead)
    sentences = [
        replace(sentence, passage=passage, nearest=Nearest(number, 0, 9, 0.8, ()))
        for sentence, passage, number in zip(verdict.sentences, resting, (2, 3), strict=True)
    ]
    found = assess(
        Policy(), Example(QUESTION, sources, response), replace(verdict, sentences=tuple(sentences))
    )
    assert found.closest == closest


def test_where_nothing_was_retrieved_no_source_is_named() -> None:
    found = assess_unjudged(Policy(), QUESTION, ())
    assert (found.decided.action, found.decided.rule) == ("withhold", "rules.null")
    assert found.message == "The available documents do not answer this question."


def test_what_could_not_be_judged_is_the_graver_of_two_rules() -> None:
    fit = (Source("Leave is 16 weeks.", title="Leave"),)
    found = assess_unjudged(Policy(), QUESTION, fit)
    assert (found.decided.rule, found.closest) == ("unavailable", (0,))
    mild = Policy(rules={"null": "mark"})
    assert assess_unjudged(mild, QUESTION, ()).decided.rule == "unavailable"
    assert assess_unjudged(Policy(rules={"null": None}), QUESTION, ()).decided.rule == "unavailable"
