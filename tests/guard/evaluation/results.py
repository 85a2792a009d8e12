"""Results made by hand: no detector is needed to compare them."""

from __future__ import annotations

from typing import Any

from lrp4rag.guard.evaluation.regression_gate import Saved
from lrp4rag.guard.evaluation.result import Result

LENGTH = 20


def result(id: object, hallucinated: bool, flagged: bool | None, **more: Any) -> Result:
    """Of a response of two sentences, whose second is labelled where it is hallucinated, and suspect where it
    is flagged; each of a source of its own."""
    second = (10, LENGTH)
    return Result.model_validate(
        {
            "id": str(id),
            "judged": f"hash of {id}",
            "source": str(id),
            "generator": None,
            "length": LENGTH,
            "labels": (second,) if hallucinated else (),
            "outcome": "abstained" if flagged is None else "judged",
            "why": "surprise" if flagged is None else "",
            "probability": 0.9 if flagged else 0.1,
            "flagged": flagged,
            "spans": (second,) if flagged else (),
            "sentences": ((0, 10, False), (*second, bool(flagged))),
            "faithfulness": 0.5 if flagged else 1.0,
            "action": "serve" if flagged is False else "withhold",
            "reason": "grounded" if flagged is False else "insufficient evidence",
            **more,
        }
    )


def results(count: int = 40, wrong: int = 0) -> list[Result]:
    """Every second one is hallucinated; the last `wrong` of these are missed."""
    missed = {k for k in range(count) if k % 2 and k >= count - 2 * wrong}
    return [result(k, bool(k % 2), bool(k % 2) and k not in missed) for k in range(count)]


def saved(given: list[Result], **made_with: Any) -> Saved:
    return Saved(made_with={"detector": "default", **made_with}, examples=tuple(given))
