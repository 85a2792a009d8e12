"""What is done with an answer follows from its sentences' statuses and what checks found, by two laws."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from lrp4rag.classifiers.verdict import FLAGGED
from lrp4rag.guard.policy import WITHHELD, Measures, Policy, decide, load_policy
from lrp4rag.guard.policy.reasons import CHECK_OF

DEFAULT = Policy()
FILES = sorted((Path(__file__).parents[3] / "examples" / "policies").glob("*.yaml"))
POLICIES = {"default": DEFAULT} | {path.stem: load_policy(path) for path in FILES}
CHECKS = tuple(dict.fromkeys([*CHECK_OF.values(), "facts"]))
FAULTS = {"null", "fabricated", "misattributed", "disguised", "planted"}
"""Kinds of findings for which an answer may be withheld though nothing of it is flagged."""


def measures(supported: int = 1, contradicted: int = 0, unsupported: int = 0, **more) -> Measures:
    """Consistent ones: a detector that flags a sentence flags the answer."""
    statuses = {"supported": supported, "contradicted": contradicted, "unsupported": unsupported}
    stating, flagged = sum(statuses.values()), contradicted + unsupported
    given = {
        "probability": (0.9 if flagged else 0.1) if stating else None,
        "hallucinated": flagged > 0,
        "faithfulness": supported / stating if stating else None,
        "facts": supported / stating if stating else None,
    }
    return Measures(statuses=statuses, **given | more)


def decided(*counts: int, policy: Policy = DEFAULT, **more) -> tuple[str, str]:
    found = decide(policy, measures(*counts, **more))
    return found.action, found.reason


ANY = some.builds(
    measures,
    some.integers(0, 60),
    some.integers(0, 3),
    some.integers(0, 3),
    abstained=some.booleans(),
    judged=some.booleans(),
    found=some.frozensets(some.sampled_from(list(CHECK_OF))),
    unavailable=some.frozensets(some.sampled_from(CHECKS)),
)


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@given(one=ANY)
def test_the_laws(policy: Policy, one: Measures) -> None:
    found = decide(policy, one)
    without_verdict = one.abstained or not one.judged or bool(one.unavailable)
    if one.flagged or one.hallucinated or without_verdict:
        assert found.action != "serve"
    if found.action in WITHHELD:
        assert one.flagged or without_verdict or one.found & FAULTS


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@given(one=ANY, kind=some.sampled_from(list(CHECK_OF)))
def test_what_is_found_more_never_makes_a_decision_milder(policy: Policy, one: Measures, kind) -> None:
    from dataclasses import replace

    from lrp4rag.guard.policy import ACTIONS

    more = decide(policy, replace(one, found=one.found | {kind}))
    assert ACTIONS.index(more.action) >= ACTIONS.index(decide(policy, one).action)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((3,), ("serve", "grounded")),
        ((0,), ("serve", "states nothing")),
        ((2, 1), ("disclose", "contradicted")),
        ((1, 1), ("disclose", "contradicted")),
        ((0, 1), ("withhold", "contradicted")),
        ((60, 1), ("disclose", "contradicted")),
        ((2, 0, 1), ("mark", "unsupported")),
        ((60, 0, 1), ("mark", "unsupported")),
        ((1, 0, 2), ("withhold", "unsupported")),
        ((1, 1, 1), ("withhold", "contradicted")),
        ((2, 1, 1), ("disclose", "contradicted")),
    ],
)
def test_counts_decide(counts: tuple[int, ...], expected: tuple[str, str]) -> None:
    assert decided(*counts) == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("null", ("withhold", "knowledge gap")),
        ("fabricated", ("withhold", "fabricated citation")),
        ("misattributed", ("mark", "misattributed citation")),
        ("disguised", ("escalate", "disguised text")),
        ("planted", ("escalate", "planted instructions")),
        ("conflict", ("disclose", "conflict")),
        ("outdated", ("disclose", "outdated source")),
        ("omitted", ("serve", "grounded")),
    ],
)
def test_what_a_check_finds_in_a_good_answer(kind, expected) -> None:
    assert decided(found=frozenset({kind})) == expected


@pytest.mark.parametrize("status", FLAGGED)
def test_a_policy_has_an_action_for_each_status_that_is_suspect(status: str) -> None:
    one = measures(**{status: 1})
    assert one.flagged == one.statuses[status] == 1
    found = decide(Policy(claims={status: "escalate"}), one)
    assert (found.action, found.reason, found.rule) == ("escalate", status, f"claims.{status}")


def test_a_milder_rule_lets_nothing_out() -> None:
    """Two passages with 10 and 14 days, and an answer of 30: the conflict is disclosed, the invention not."""
    assert decided(0, 0, 1, found=frozenset({"conflict"})) == ("withhold", "unsupported")
    assert decided(0, 0, 1, found=frozenset({"outdated"})) == ("withhold", "unsupported")


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_that_did_not_finish_is_not_a_clean_one(check: str) -> None:
    assert decided(unavailable=frozenset({check})) == ("withhold", "unavailable")
    without = Policy(checks={one: {} for one in CHECKS if one != check})
    assert decided(policy=without, unavailable=frozenset({check}))[0] == "serve"


def test_no_verdict() -> None:
    assert decided(judged=False) == ("withhold", "unavailable")
    assert decided(abstained=True) == ("withhold", "unlike training data")
    lenient = Policy(unavailable="mark", abstained="mark")
    assert decided(policy=lenient, judged=False) == ("mark", "unavailable")
    found = frozenset({"fabricated"})
    assert decided(policy=lenient, judged=False, found=found) == ("withhold", "fabricated citation")


def test_a_verdict_on_the_whole_without_a_suspect_sentence() -> None:
    """Of a detector that judges responses only."""
    assert decided(0, hallucinated=True, probability=0.9) == ("mark", "unsupported")


def test_a_rule_without_an_action_is_none() -> None:
    policy = Policy.model_validate({"rules": dict.fromkeys(CHECK_OF)})
    assert decided(policy=policy, found=frozenset(CHECK_OF)) == ("serve", "grounded")


@pytest.mark.parametrize(
    ("supported", "facts", "expected"),
    [
        (100, 1.0, ("serve", "grounded")),
        (85, 0.80, ("mark", "unsupported")),
        (84, 1.0, ("mark", "unsupported")),
        (100, 0.7999, ("mark", "suspect")),
        (65, 0.0, ("mark", "unsupported")),
        (64, 1.0, ("withhold", "insufficient evidence")),
        (40, 0.0, ("withhold", "insufficient evidence")),
        (39, 1.0, ("withhold", "knowledge gap")),
        (0, 0.0, ("withhold", "knowledge gap")),
    ],
)
def test_the_bands_of_the_enterprise_policy(supported, facts, expected) -> None:
    """They withhold and mark as their table says; what it would serve though it is flagged is marked."""
    assert decided(supported, 0, 100 - supported, facts=facts, policy=POLICIES["enterprise"]) == expected
