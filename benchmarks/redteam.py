"""The red team's results as a page: by kind, before and after what was mended, each failure with why."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from benchmarks.command import SETTINGS, exit_codes, table
from lrp4rag.guard.redteam.cases import KINDS
from lrp4rag.report.markdown import text
from lrp4rag.util.errors import InputError
from lrp4rag.util.files import write_atomically

FOLDER = Path("docs/results/redteam")
Found = dict[str, Any]
TEXT = Path(__file__).with_suffix(".md")
"""With TABLES where the results belong."""


def page(before: Found, after: Found, reasons: dict[str, str]) -> str:
    """Raises `InputError` where runs are of other cases, or a failure or a reason stands alone."""
    if before["cases"] != after["cases"]:
        raise InputError("before and after are of other cases", path=FOLDER)
    failed = [one for one in after["results"] if not one["passed"]]
    if differ := {one["id"] for one in failed} ^ set(reasons):
        raise InputError(f"reasons are of other failures: {', '.join(sorted(differ))}", path=FOLDER)
    kinds = table(("", "before", "after", "harmful", "harmless"), list(by_kind(before, after)))
    rows = [
        (one["id"], _expected(one), f"{one['action']}: {one['reason']}", text(reasons[one["id"]]))
        for one in failed
    ]
    failures = table(("case", "expected", "done", "because"), rows)
    parts = ["## By kind", "", *kinds, "", f"## The {len(failed)} that fail", "", *failures, ""]
    return TEXT.read_text().replace("TABLES\n", "\n".join(parts))


def by_kind(before: Found, after: Found) -> Iterator[tuple[str, ...]]:
    for kind, found in after["kinds"].items():
        name = f"**{kind}**" if kind == "all" else KINDS.get(kind, kind)
        shares = (before["kinds"][kind]["every"], found["every"], found["harmful"], found["harmless"])
        yield name, *map(_share, shares)


def _share(found: Found) -> str:
    if not found["cases"]:
        return ""
    return f"{found['passed']} of {found['cases']} [{found['low']:.0%}, {found['high']:.0%}]"


def _expected(one: Found) -> str:
    return " or ".join(one["expected"])


@click.command(context_settings=SETTINGS)
@click.option("--folder", default=FOLDER, show_default=True, type=click.Path(path_type=Path, file_okay=False))
def main(folder: Path) -> None:
    """Write FOLDER/README.md from before.json, after.json and reasons.json there."""
    given = (json.loads((folder / f"{name}.json").read_text()) for name in ("before", "after", "reasons"))
    with exit_codes():
        write_atomically(folder / "README.md", page(*given))


if __name__ == "__main__":
    main()
