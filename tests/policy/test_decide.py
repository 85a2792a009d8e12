"""The default policy is the table of bands that enterprises use, and each border of it is tested."""

from __future__ import annotations

import itertools

import pytest

from lrp4rag.policy import ACTIONS, Measures, Policy, decide

DEFAULT = Policy()
CHECKS = ("retrieval", "citations", "disguise", "planted", "conflicts", "outdated", "omissions", "facts")
KINDS = ("null", "fabricated", "misattributed", "disguised", "planted", "conflict", "outdated", "omitted")


def decided(faithfulness: float | None = 1.0, facts: float | None = 1.0, policy=DEFAULT, **more):
    found = decide(
        policy, Measures(**{"probability": 0.1, "faithfulness": faithfulness, "facts": facts} | more)
    )
    return found.action, found.reason


@pytest.mark.parametrize(
    ("faithfulness", "facts", "expected"),
    [
        (1.0, 1.0, ("serve", "grounded")),
        (0.85, 0.80, ("serve", "grounded")),
        (0.8499, 1.0, ("mark", "suspect")),
        (1.0, 0.7999, ("mark", "suspect")),
        (0.65, 0.0, ("mark", "suspect")),
        (0.6499, 1.0, ("withhold", "insufficient evidence")),
        (0.40, 0.0, ("withhold", "insufficient evidence")),
        (0.3999, 1.0, ("withhold", "knowledge gap")),
        (0.0, 0.0, ("withhold", "knowledge gap")),
        (0.9, None, ("serve", "grounded")),
        (0.7, None, ("mark", "suspect")),
    ],
)
def test_bands(faithfulness, facts, expected) -> None:
    assert decided(faithfulness, facts) == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("null", ("withhold", "knowledge gap")),
        ("fabricated", ("withhold", "fabricated citation")),
        ("misattributed", ("escalate", "misattributed citation")),
        ("disguised", ("escalate", "disguised text")),
        ("planted", ("escalate", "planted instructions")),
        ("conflict", ("disclose", "conflict")),
        ("outdated", ("disclose", "outdated source")),
        ("omitted", ("mark", "omitted condition")),
    ],
)
def test_what_a_check_finds_in_a_good_answer(kind, expected) -> None:
    assert decided(found=frozenset({kind})) == expected


def test_precedence_of_every_combination() -> None:
    """The first kind of the table decides; what is left out only where the band is milder."""
    for size in range(len(KINDS) + 1):
        for found in itertools.combinations(KINDS, size):
            for faithfulness in (0.0, 0.5, 0.7, 1.0):
                action, reason = decided(faithfulness, found=frozenset(found))
                first = next((one for one in KINDS[:-1] if one in found), None)
                if first is not None:
                    assert (action, reason) == decided(1.0, found=frozenset({first}))
                elif "omitted" in found and faithfulness == 1.0:
                    assert reason == "omitted condition"
                else:
                    assert (action, reason) == decided(faithfulness)


def test_no_verdict_is_never_clean() -> None:
    """Whatever was found, and whichever checks failed."""
    for found, missing in itertools.product(
        [frozenset(), *(frozenset({one}) for one in KINDS)],
        [frozenset(), *(frozenset({one}) for one in CHECKS)],
    ):
        for more in ({"probability": None}, {"abstained": True}):
            action, _ = decided(found=found, unavailable=missing, **more)
            assert ACTIONS.index(action) >= ACTIONS.index("escalate")


def test_a_graver_finding_goes_before_no_verdict() -> None:
    lenient = Policy(unavailable="mark", abstained="mark")
    assert decided(policy=lenient, probability=None) == ("mark", "unavailable")
    found = frozenset({"fabricated"})
    assert decided(policy=lenient, probability=None, found=found) == ("withhold", "fabricated citation")


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_that_did_not_finish_is_not_a_clean_one(check: str) -> None:
    action, reason = decided(unavailable=frozenset({check}))
    assert (action, reason) == ("withhold", "unavailable")
    without = Policy(checks={one: {} for one in CHECKS if one != check})
    assert decided(policy=without)[0] == "serve"


def test_a_rule_without_an_action_is_none() -> None:
    policy = Policy.model_validate({"rules": dict.fromkeys(KINDS)})
    assert decided(policy=policy, found=frozenset(KINDS)) == ("serve", "grounded")
    assert decided(policy=policy, unavailable=frozenset(CHECKS[:-1])) == ("serve", "grounded")


def test_an_answer_that_states_nothing() -> None:
    assert decided(None, None) == ("serve", "grounded")
    assert decided(None, None, suspect=True) == ("withhold", "knowledge gap")


def test_a_policy_by_probability_alone() -> None:
    policy = Policy.model_validate(
        {"checks": {}, "withhold_from": 0.4, "bands": [{"action": "serve", "reason": "grounded"}]}
    )
    assert decided(0.0, 0.0, policy, probability=0.3999) == ("serve", "grounded")
    assert decided(1.0, 1.0, policy, probability=0.4) == ("withhold", "insufficient evidence")


def test_abstained_may_be_served() -> None:
    assert decided(policy=Policy(abstained="serve"), abstained=True) == ("serve", "grounded")
    assert decided(0.0, policy=Policy(abstained="serve"), abstained=True)[0] == "withhold"


@pytest.mark.parametrize(
    ("probability", "suspect", "abstained", "expected"),
    [
        (0.0, False, False, ("serve", "grounded")),
        (0.4999, False, False, ("serve", "grounded")),
        (0.4999, True, False, ("mark", "suspect")),
        (0.5, False, False, ("withhold", "insufficient evidence")),
        (1.0, True, False, ("withhold", "insufficient evidence")),
        (0.0, False, True, ("withhold", "unlike training data")),
        (1.0, True, True, ("withhold", "unlike training data")),
    ],
)
def test_a_sentence_of_a_stream(probability, suspect, abstained, expected) -> None:
    assert DEFAULT.sentence(probability, suspect=suspect, abstained=abstained) == expected


def test_sentences_by_a_policy_of_ones_own() -> None:
    lenient = Policy.model_validate({"sentences": {"mark_from": 0.2}, "abstained": "serve"})
    assert lenient.sentence(0.2, suspect=False, abstained=True) == ("mark", "suspect")
    assert lenient.sentence(0.19, suspect=True, abstained=False) == ("serve", "grounded")
