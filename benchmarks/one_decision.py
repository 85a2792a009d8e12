"""Is it one decision? Whole and streamed answers, and one wrong sentence among many right ones.

    python -m benchmarks.one_decision --out docs/results/one-decision.json

Everyday questions of the package, whose answers open as chat models' do: with headings, greetings, lists,
emoji. The bundled detector learned from them, which does not matter here: what is counted is whether two ways
to judge agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import click

from benchmarks.command import Report, benchmark, table
from lrp4rag.classifiers.verdict import Status
from lrp4rag.data import load_examples
from lrp4rag.example import Example
from lrp4rag.guard.policy import GuardedAnswer, Policy, assess
from lrp4rag.guard.policy.answer import Pending
from lrp4rag.judge import Detector
from lrp4rag.training.sets import set_path
from lrp4rag.util.progress import track

OPENINGS = (
    "", "", "## Answer\n\n", "**Answer**\n\n", "Okay. ", "Sure! ", "\U0001f642 ", "Hello!\n\n",
    "Great question! ",
    "# Summary\n", "- ", "1. ", "> ", "Based on the passages:\n\n", "**Short answer:** ",
)  # fmt: skip
CLOSINGS = (
    "",
    "",
    "",
    "\n\nI hope this helps!",
    "\n\nLet me know if you have more questions.",
    "\n\n---",
    " \U0001f44d",
)
COUNTS = (0, 1, 2, 6, 20, 60)
"""Of right sentences around one wrong one."""
CONTEXT = [
    f"The {noun} for {season} are kept in the {wing} wing."
    for season, wing in (("spring", "north"), ("summer", "south"), ("autumn", "east"), ("winter", "west"))
    for noun in (
        "ropes", "helmets", "paddles", "tents", "lamps", "stoves", "boots", "skis", "maps", "flasks",
        "gloves",
        "bells", "chairs", "drums", "kites",
    )
]  # fmt: skip
WRONG = (
    ("The Brio 3 runs for 38 minutes at night.", "The Brio 3 runs for 52 minutes at night."),
    ("Returns are accepted within 14 days of delivery.", "Returns are accepted within 30 days of delivery."),
    ("The museum opened in June 1934.", "The museum opened in March 1951."),
    ("The course costs 120 euros.", "The course costs 480 euros."),
    ("Take one tablet three times a day with water.", "Take one tablet five times a day with water."),
    ("The club is led by Amina Castell.", "The club is led by Tomas Ekdahl."),
    ("The pool is 25 metres long.", "The pool is 50 metres long."),
    ("Tickets are sold at the north gate.", "The queen of Norway bought the first ticket in a snowstorm."),
    ("Parking is free on Sundays.", "A storm destroyed the old observatory and its telescope in 1953."),
    ("The boat carries 12 passengers.", "The boat carries 90 passengers."),
    ("The lease ends after 5 years.", "The lease ends after 20 years."),
    ("The hall was built by Lena Hartmann.", "The hall was built by Gustave Eiffel for the fair."),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was said of one answer: its sentences' statuses, the action and its reason."""

    statuses: tuple[Status, ...]
    action: str
    reason: str


def whole(detector: Detector, policy: Policy, example: Example) -> Outcome:
    verdict = detector.judge(example, evidence=False)
    decided = assess(policy, example, verdict).decided
    statuses = tuple(one.status for one in verdict.sentences if any(map(str.isalnum, one.text)))
    return Outcome(statuses, decided.action, decided.reason)


def streamed(detector: Detector, policy: Policy, example: Example, random: Random) -> tuple[Outcome, str]:
    """The same of the answer in random parts, and what was let out of it."""
    text = example.response or ""
    answer, shown = GuardedAnswer(policy, example.question, example.sources), list[str]()
    answer.begin(detector.reading_of(Example(example.question, example.passages)))
    parts, at = list[str | None](), 0
    while at < len(text):
        end = at + random.randint(1, 40)
        parts.append(text[at:end])
        at = end
    for written in (*parts, None):
        answer.end() if written is None else answer.write(written)
        while (due := answer.next()) is not None:
            part = answer.release(answer.decide(due)) if isinstance(due, Pending) else due
            shown.append(part.text)
    found = answer.assess(detector.card.threshold)
    statuses = tuple(one.status for one in answer.judged if any(map(str.isalnum, one.text)))
    return Outcome(statuses, found.decided.action, found.decided.reason), "".join(shown)


def dressed(rows: Sequence[Example], count: int, random: Random) -> list[Example]:
    """Answers as chat models write them, to questions in groups, so that a prompt is read once."""
    made = list[Example]()
    for row in random.sample(list(rows), count):
        response = row.response or ""
        if random.random() < 0.3:
            response = "".join(f"- {line}\n" for line in response.split(". ")).rstrip()
        made.append(row.with_response(f"{random.choice(OPENINGS)}{response}{random.choice(CLOSINGS)}"))
    return sorted(made, key=lambda one: one.prompt)


def diluted(detector: Detector, policy: Policy) -> list[dict[str, Any]]:
    """One wrong sentence among `COUNTS` right ones, at the answer's begin and at its end."""
    found = list[dict[str, Any]]()
    for right, wrong in track(WRONG, len(WRONG), "diluting"):
        passages = [right, " ".join(CONTEXT)]
        for place in ("first", "last"):
            for count in COUNTS:
                lines = [wrong, *CONTEXT[:count]] if place == "first" else [*CONTEXT[:count], wrong]
                example = Example("What do the passages say?", passages, " ".join(lines))
                verdict = detector.judge(example, evidence=False)
                at = 0 if place == "first" else len(verdict.sentences) - 1
                found.append(
                    {
                        "wrong": wrong,
                        "place": place,
                        "right sentences": count,
                        "probability": verdict.probability,
                        "hallucinated": verdict.hallucinated,
                        "status": verdict.sentences[at].status,
                        "action": assess(policy, example, verdict).decided.action,
                    }
                )
    return found


@benchmark
@click.option("--answers", default=500, show_default=True, help="Whole and streamed.")
@click.option("--dtype", default="bfloat16", show_default=True, help="Of the reader.")
def main(answers: int, dtype: str) -> Report:
    """Whole and streamed answers agree; a wrong sentence among right ones is as suspect as alone."""
    policy, random = Policy(), Random(0)
    detector = Detector.load(dtype=dtype, prompt_bytes=2**28)
    rows = dressed(load_examples(set_path(Path("everyday"))), answers, random)
    differ, unsaid, actions = list[dict[str, str]](), 0, Counter[str]()
    with detector:
        for example in track(rows, len(rows), "judging whole and streamed"):
            one = whole(detector, policy, example)
            other, shown = streamed(detector, policy, example, random)
            actions[one.action] += 1
            if one != other:
                differ.append({"response": example.response or "", "whole": str(one), "streamed": str(other)})
            unsaid += one.action == "serve" and shown != example.response
        dilution = diluted(detector, policy)
    result = {
        "answers": answers,
        "actions": dict(actions),
        "differ": differ,
        "served answers that a stream changes": unsaid,
        "dilution": dilution,
    }
    alone = {
        (one["wrong"], one["place"]) for one in dilution if not one["right sentences"] and one["hallucinated"]
    }
    lines = []
    for count in COUNTS:
        some = [
            one
            for one in dilution
            if one["right sentences"] == count and (one["wrong"], one["place"]) in alone
        ]
        lines.append(
            (
                str(count),
                f"{sum(bool(one['hallucinated']) for one in some)} of {len(some)}",
                f"{sum(one['action'] == 'serve' for one in some)}",
                f"{min(one['probability'] for one in some):.2f}",
            )
        )
    heads = (
        "right sentences beside it",
        "flagged, of those flagged alone",
        "served unmarked",
        "lowest probability",
    )
    return result, [
        f"{answers - len(differ)} of {answers} answers: the same statuses and decision.",
        "",
        *table(heads, lines),
    ]


if __name__ == "__main__":
    main()
