"""A folder of results: results.json, then a page made of it by a template, with no number typed by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lrp4rag.experiments.claim import PAGE, claim
from lrp4rag.files import write_atomically
from lrp4rag.report.numbers import difference, number, percent, percent_interval, slug, verdict, with_interval
from lrp4rag.report.templates import markdown_templates
from lrp4rag.training.records import rounded, to_json

RESULTS = "results.json"
Filters = Mapping[str, Callable[..., Any]]
FILTERS: Filters = {
    "interval": with_interval,
    "signed": difference,
    "verdict": verdict,
    "number": number,
    "percent": percent,
    "percent_interval": percent_interval,
    "slug": slug,
}
"""What every template may use beside what escapes (`report.templates`)."""


def claim_page(out: Path, kind: str) -> None:
    """Make the folder of a page; raises `InputError` where it has files that `kind` did not write."""
    claim(out, kind, RESULTS)


def write_record(out: Path, kind: str, found: Any, **more: Any) -> Path:
    """results.json: `kind`, which says who wrote the folder, `more`, and a dataclass or mapping of findings.

    Write it before anything else there. Raises `InputError` where the folder has files that `kind` did not
    write.
    """
    claim_page(out, kind)
    record = {"kind": kind, **to_json(more), **to_json(found)}
    write_atomically(out / RESULTS, json.dumps(rounded(record), indent=1) + "\n")
    return out / RESULTS


def write_markdown(out: Path, template: Path, filters: Filters | None = None, **values: Any) -> Path:
    """README.md of a template and its values; `filters` are those that only this one uses."""
    environment = markdown_templates(template.parent)
    environment.filters |= {**FILTERS, **(filters or {})}
    write_atomically(out / PAGE, environment.get_template(template.name).render(**values))
    return out / PAGE
