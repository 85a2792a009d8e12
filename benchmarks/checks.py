"""What the checks of a policy cost beside the detector, in one run."""

from __future__ import annotations

import time
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from benchmarks import command
from benchmarks.command import Report, benchmark, count, table
from lrp4rag import Detector
from lrp4rag.data import load_examples
from lrp4rag.guard.checks.check import CheckInput
from lrp4rag.guard.checks.registry import run_checks
from lrp4rag.guard.policy import Policy
from lrp4rag.training.sets import set_path


@benchmark
@count("--answers", 40, "Answers, each of another question.")
@command.dtype
def main(answers: int, dtype: str) -> Report:
    """Seconds of a verdict alone, and of each check, on answers of the bundled set.

    \b
    Examples:
      python -m benchmarks.checks
      python -m benchmarks.checks --answers 200
    """
    known = [one for one in load_examples(set_path(Path("everyday"))) if one.response]
    checks, taken = Policy().made, defaultdict[str, list[float]](list)
    with Detector.load(dtype=dtype) as detector:
        some = Random(0).sample(known, min(answers, len(known)))
        detector.judge(some[0], evidence=False)  # the first pass is slower
        for example in some:
            started = time.perf_counter()
            verdict = detector.judge(example, evidence=False)
            taken["verdict"].append(time.perf_counter() - started)
            given = CheckInput(example.question, example.sources, example.response, verdict)
            for name, seconds in run_checks(checks, given, budget=60).seconds.items():
                taken[name].append(seconds)
    medians = {name: float(np.median(taken[name])) for name in ("verdict", *checks)}
    shares = {name: sum(taken[name]) / sum(taken["verdict"]) for name in checks}
    result: dict[str, Any] = {
        "checks_over_verdict": sum(shares.values()),
        **{f"{name}_over_verdict": share for name, share in shares.items()},
        **{f"{name}_seconds": median for name, median in medians.items()},
    }
    rows = [(name, f"{medians[name]:.4f}", f"{shares.get(name, 1):.3f}") for name in medians]
    return result, table(
        ("", "seconds, median", "over the verdict"),
        [*rows, ("all checks", "", f"{sum(shares.values()):.3f}")],
    )


if __name__ == "__main__":
    main()
