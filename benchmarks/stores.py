"""`python -m benchmarks.stores FIRST SECOND`: is relevance of the same responses the same in two stores?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from benchmarks.command import Report, benchmark, table
from lrp4rag.example import Example
from lrp4rag.features.parts import MATRIX, PROMPT, RELEVANCE
from lrp4rag.training.store import Store, key_of
from lrp4rag.util.errors import InputError

NAMES = {RELEVANCE: "R_response", PROMPT: "R_prompt", MATRIX: "R*"}
_STORE = click.Path(exists=True, file_okay=False)


@benchmark
@click.argument("first", type=_STORE)
@click.argument("second", type=_STORE)
def main(first: str, second: str) -> Report:
    """Correlation and relative difference of R_response, R_prompt and R* that two stores have of the same
    responses: made on different machines, say, or in different precisions.

    \b
    Example:
      python -m benchmarks.stores on-cpu on-gpu --out stores.json
    """
    one, other = Store.existing(first), Store.existing(second)
    known = {key_of(example) for example in other.examples()}
    both = {key_of(example): example for example in one.examples() if key_of(example) in known}
    found: dict[str, Any] = {}
    for part, name in NAMES.items():
        pairs = [
            (_values(one, example, part), _values(other, example, part))
            for example in both.values()
            if one.has(example, part) and other.has(example, part)
        ]
        if pairs:
            correlations = [float(np.corrcoef(a, b)[0, 1]) for a, b in pairs]
            differences = [float(np.linalg.norm(a - b) / np.linalg.norm(a)) for a, b in pairs]
            found[name] = {
                "responses": len(pairs),
                "correlation": {"median": float(np.median(correlations)), "lowest": min(correlations)},
                "difference": {"median": float(np.median(differences)), "largest": max(differences)},
            }
    if not found:
        raise InputError("these stores have no relevance of the same responses", path=Path(second))
    rows = [
        (
            name,
            str(each["responses"]),
            f"{each['correlation']['median']:.5f}",
            f"{each['correlation']['lowest']:.5f}",
            f"{each['difference']['median']:.3f}",
            f"{each['difference']['largest']:.3f}",
        )
        for name, each in found.items()
    ]
    head = ("", "responses", "correlation, median", "lowest", "relative difference, median", "largest")
    return {"parts": found}, table(head, rows)


def _values(store: Store, example: Example, part: str) -> np.ndarray:
    if part == RELEVANCE:
        return np.asarray(store.read(example).response, dtype=np.float64)
    name = "matrix" if part == MATRIX else part
    return np.asarray(store.arrays(example, part, [name])[name], dtype=np.float64).ravel()


if __name__ == "__main__":
    main()
