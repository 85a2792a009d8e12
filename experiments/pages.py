"""Pages of results, written again from their records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from jinja2 import UndefinedError

from experiments.breakdown import page as breakdown
from experiments.lettuce import page as lettuce
from experiments.paper import claims
from experiments.ragulator import page as ragulator
from experiments.results_page import RESULTS, Results
from experiments.study import page as study
from experiments.systems.comparison import compare
from experiments.systems.comparison import page as comparison
from experiments.worth import page as worth
from lrp4rag.util.errors import InputError, first_line

RENDERERS: dict[str, Callable[[Path], list[Path]]] = {
    compare.KIND: comparison.render,
    study.KIND: study.render,
    breakdown.KIND: breakdown.render,
    ragulator.KIND: ragulator.render,
    worth.KIND: worth.render,
    claims.KIND: claims.render,
    lettuce.KIND: lettuce.render,
}
"""By the `kind` of a record: what writes README.md, tables and figures of it."""


def render(folder: Path) -> list[Path]:
    """Write the page of a folder from its results.json, as the command that wrote that does. The page is the
    first of the files returned, the record the last.

    Raises `InputError` where there is no record, none of these kinds, or one that does not fit together.
    """
    results = Results.of(folder)
    if results.kind not in RENDERERS:
        known = ", ".join(sorted(RENDERERS))
        why = f"no page is known of '{results.kind}'; there are pages of {known}"
        raise InputError(why, path=results.path, field="kind")
    try:
        return RENDERERS[results.kind](folder)
    except (LookupError, ValueError, UndefinedError) as error:
        why = f"the parts of {RESULTS} do not fit together ({type(error).__name__}: {first_line(error)})"
        raise InputError(why, path=results.path) from error
