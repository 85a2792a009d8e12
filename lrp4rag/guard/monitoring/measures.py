"""What is compared of two windows: scores, decisions, sizes and retrieval, each one line of `MEASURES`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from lrp4rag.guard.monitoring.windows import UNAVAILABLE, Observed

Kind = Literal["mean", "share", "table"]
Family = Literal["outcome", "cause"]
Value = float | bool | str | None

GROUPS = ("topic", "generator")
"""What answers are grouped by."""


@dataclass(frozen=True, slots=True)
class Measure:
    """`value` gives a number ("mean"), whether something is so ("share") or a name ("table") for a record,
    None where it has none.

    * `family`: outcomes are what users meet; causes are where a change of them may come from.
    * `worse`: 1 where higher is worse, -1 where lower is, 0 where neither is.
    * `relative`: its change is a part of its mean in the baseline; that of the others is absolute.
    * `grouped`: it is also compared within each topic and each generator.
    * `retrieved`: it is of the checks of what was retrieved, and not of answers.
    """

    name: str
    kind: Kind
    family: Family
    value: Callable[[Observed], Value]
    worse: Literal[-1, 0, 1] = 0
    relative: bool = False
    grouped: bool = False
    retrieved: bool = False


def _sentence_characters(one: Observed) -> float | None:
    if one.characters is None or not one.sentence_count:
        return None
    return one.characters / one.sentence_count


MEASURES = (
    Measure("probability", "mean", "outcome", lambda x: x.probability if x.judged else None, 1, grouped=True),
    Measure(
        "faithfulness", "mean", "outcome", lambda x: x.faithfulness if x.judged else None, -1, grouped=True
    ),
    Measure("fact score", "mean", "outcome", lambda x: x.fact_score if x.judged else None, -1, grouped=True),
    Measure("withheld", "share", "outcome", lambda x: not x.served, 1, grouped=True),
    Measure("actions", "table", "cause", lambda x: x.action),
    Measure("reasons", "table", "cause", lambda x: x.reason),
    Measure("abstained", "share", "cause", lambda x: x.unlike, 1),
    Measure("unavailable", "share", "cause", lambda x: x.reason == UNAVAILABLE, 1),
    Measure("knowledge gap", "share", "cause", lambda x: x.reason == "knowledge gap", 1),
    Measure("contradicted", "share", "cause", lambda x: x.reason == "contradicted", 1),
    Measure("unsupported", "share", "cause", lambda x: x.reason == "unsupported", 1),
    Measure("length", "mean", "cause", lambda x: x.characters, relative=True),
    Measure("sentence length", "mean", "cause", _sentence_characters, relative=True),
    Measure("passages", "mean", "cause", lambda x: x.passages, relative=True),
    Measure("retrieval score", "mean", "cause", lambda x: x.retrieval_score, -1, relative=True, grouped=True),
    Measure(
        "score at the gate", "mean", "cause", lambda x: x.retrieval_score, -1, relative=True, retrieved=True
    ),
    Measure("nothing retrieved", "share", "cause", lambda x: not x.served, 1, retrieved=True),
    Measure("topics", "table", "cause", lambda x: x.topic),
    Measure("generators", "table", "cause", lambda x: x.generator),
)
"""In the order in which they are shown."""
