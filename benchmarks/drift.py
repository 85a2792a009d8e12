"""How often `lrp4rag drift` finds a change that was planted, and how often one where there is none."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from benchmarks.command import Report, benchmark, count, table
from lrp4rag.guard.monitoring.advice import advice
from lrp4rag.guard.monitoring.drift import Drift, compare
from lrp4rag.guard.monitoring.periods import Period
from lrp4rag.guard.monitoring.windows import Observed, Window
from lrp4rag.guard.policy import Measures, Policy, decide
from lrp4rag.guard.policy.simulate import Share

SCORES = Path(__file__).parent.parent / "experiments/results/compare/scores/lrp4rag.json.xz"
SHIFT = 0.05
TOPICS = {"one": 0.40, "two": 0.25, "three": 0.20, "four": 0.15}
GENERATORS = {"a": 0.7, "b": 0.3}
BROKEN = "two"
CONVERSATION = 5
NOW = datetime(2026, 1, 15, tzinfo=UTC)
POLICY = Policy()

Numbers = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Numbers]


@dataclass(frozen=True, slots=True)
class Scenario:
    """How the probabilities of the second window are drawn: `outcomes` whether what follows from them does
    so, else only they change; `broken` is the topic of which they change, by all of the shift."""

    name: str
    mean: float
    outcomes: bool = True
    broken: bool = False
    conversations: bool = False
    resampled: bool = False


SCENARIOS = (
    Scenario("nothing", 0.0),
    Scenario("nothing, scores resampled", 0.0, resampled=True),
    Scenario("the probability alone", SHIFT, outcomes=False),
    Scenario("the probability and what follows", SHIFT),
    Scenario("one topic of a quarter of the answers", SHIFT, broken=True),
    Scenario("nothing, in conversations of five", 0.0, conversations=True),
)


def real_scores() -> Numbers:
    """Probabilities of our detector for RAGTruth's answers, each from a detector that has not seen it."""
    with lzma.open(SCORES) as stream:
        found: Numbers = np.array(json.load(stream)["scores"]["outcome"]["probabilities"][0], dtype=float)
    return np.clip(found[np.isfinite(found)], 1e-4, 1 - 1e-4)


def fitted(scores: Numbers) -> tuple[float, float]:
    """The parameters of a Beta distribution with the mean and the variance of the scores."""
    mean, variance = float(scores.mean()), float(scores.var())
    size = mean * (1 - mean) / variance - 1
    return mean * size, (1 - mean) * size


def drawn(
    rng: np.random.Generator, answers: int, scenario: Scenario, scores: Numbers, *, after: bool
) -> tuple[Numbers, Numbers, NDArray[np.str_]]:
    """Probabilities, those that outcomes follow, and topics."""
    first, second = fitted(scores)
    topics = rng.choice(list(TOPICS), answers, p=list(TOPICS.values()))
    if scenario.resampled:
        plain = rng.choice(scores, answers)
    elif scenario.conversations:
        plain = np.repeat(rng.beta(first, second, -(-answers // CONVERSATION)), CONVERSATION)[:answers]
        own = rng.random(answers) < 0.5
        plain = np.where(own, rng.beta(first, second, answers), plain)
    else:
        plain = rng.beta(first, second, answers)
    if not after or not scenario.mean:
        return plain, plain, topics
    shift = scenario.mean / (TOPICS[BROKEN] if scenario.broken else 1.0)
    mean, size = first / (first + second) + shift, first + second
    shifted = rng.beta(mean * size, (1 - mean) * size, answers)
    if scenario.broken:
        shifted = np.where(topics == BROKEN, shifted, plain)
    return shifted, shifted if scenario.outcomes else plain, topics


def window(
    rng: np.random.Generator, answers: int, scenario: Scenario, scores: Numbers, *, after: bool
) -> Window:
    """Answers as the server would have recorded them under the default policy."""
    probabilities, behind, topics = drawn(rng, answers, scenario, scores, after=after)
    sentences = 1 + rng.poisson(4, answers)
    wrong = rng.binomial(sentences, behind)
    facts = 1 - rng.binomial(2 * sentences, behind) / (2 * sentences)
    lengths = (sentences * rng.lognormal(4.5, 0.3, answers)).astype(int)
    scored = rng.beta(14, 6, answers)
    generators = rng.choice(list(GENERATORS), answers, p=list(GENERATORS.values()))
    fate = rng.random(answers)
    period = Period(NOW, NOW + timedelta(days=7)) if after else Period(NOW - timedelta(days=7), NOW)
    found = []
    for k in range(answers):
        abstained, failed = fate[k] < 0.02, fate[k] > 0.995
        measures = Measures(
            judged=not failed,
            probability=None if failed else float(probabilities[k]),
            supported=int(sentences[k] - wrong[k]),
            unsupported=int(wrong[k]),
            faithfulness=float(1 - wrong[k] / sentences[k]),
            facts=float(facts[k]),
            abstained=bool(abstained),
        )
        decided = decide(POLICY, measures)
        found.append(
            Observed(
                id=str(k),
                kind="response",
                time=period.start + (k + 0.5) / answers * period.length,
                action=decided.action,
                reason=decided.reason,
                probability=measures.probability,
                faithfulness=measures.faithfulness,
                fact_score=measures.facts,
                abstained=bool(abstained),
                characters=int(lengths[k]),
                sentence_count=int(sentences[k]),
                passages=5,
                retrieval_score=float(scored[k]),
                topic=str(topics[k]),
                generator=str(generators[k]),
            )
        )
    return Window(period, tuple(found))


def compared(seed: int, answers: int, scenario: Scenario, scores: Numbers) -> Drift:
    rng = np.random.default_rng(seed)
    before, after = (window(rng, answers, scenario, scores, after=late) for late in (False, True))
    return compare(before, after)


def share(hits: int, of: int) -> dict[str, Any]:
    """With its 95 % interval (Wilson)."""
    found = Share(hits, of)
    low, high = found.interval or (None, None)
    return {"hits": hits, "of": of, "value": found.value, "low": low, "high": high}


def measured(scenario: Scenario, simulations: int, answers: int, scores: Numbers) -> dict[str, Any]:
    """Of all simulations, those with any drift, with one of the mean probability, and with advice that names
    the broken topic, or another."""
    any_, probability, named, other = 0, 0, 0, 0
    for seed in range(simulations):
        found = compared(seed, answers, scenario, scores)
        change = found.of("probability")
        any_ += bool(found.found)
        probability += change is not None and change.drifted
        blamed = {line.split("topic ")[1].split()[0] for line in advice(found) if "Answers of topic" in line}
        named += BROKEN in blamed
        other += bool(blamed - {BROKEN})
    return {
        "any": share(any_, simulations),
        "probability": share(probability, simulations),
        "broken_topic_named": share(named, simulations),
        "other_topic_named": share(other, simulations),
    }


def cell(found: dict[str, Any]) -> str:
    """A share with its interval, as the page has it."""
    return f"{found['value']:.3f} [{found['low']:.3f}, {found['high']:.3f}]"


@benchmark
@count("--simulations", 1000, "Pairs of windows of each scenario.")
@count("--answers", 1000, "Answers of a window.", least=50)
def main(simulations: int, answers: int) -> Report:
    """How often a change of the mean probability by 0.05 is found, and how often one where there is none.

    \b
    Examples:
      python -m benchmarks.drift --simulations 20
      python -m benchmarks.drift --out docs/results/drift.json
    """
    scores = real_scores()
    first, second = fitted(scores)
    fit = stats.kstest(scores, stats.beta(first, second).cdf)
    found = {one.name: measured(one, simulations, answers, scores) for one in SCENARIOS}
    rows = [[name, cell(one["any"]), cell(one["probability"])] for name, one in found.items()]
    result = {
        "scenarios": found,
        "shift": SHIFT,
        "beta": {"a": first, "b": second, "scores": len(scores), "largest_distance": float(fit.statistic)},
        "topics": TOPICS,
        "generators": GENERATORS,
        "comparisons": len(compared(0, answers, SCENARIOS[0], scores).changes),
    }
    return result, table(("what changed", "any drift found", "in the mean probability"), rows)


if __name__ == "__main__":
    main()
