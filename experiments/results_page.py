"""A folder of results: results.json, then a page made of it by a template, with no number typed by hand.

A page is made of its record and of nothing else, so it can be written again (`python -m experiments page`)
where its words changed and what it says takes hours to compute.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import psutil
from pydantic import ValidationError

from experiments.claim import PAGE, claim
from experiments.records import UNREADABLE, from_json, rounded, to_json
from lrp4rag.report.markdown import Markdown, code
from lrp4rag.report.numbers import difference, number, percent, percent_interval, slug, verdict, with_interval
from lrp4rag.report.templates import markdown_templates
from lrp4rag.util.errors import InputError, first_line
from lrp4rag.util.files import write_atomically
from lrp4rag.util.strict_json import read_record
from lrp4rag.util.types import first_fault

T = TypeVar("T")
RESULTS = "results.json"
FORMER, PROGRAM = "lrp4rag experiments", "python -m experiments"
"""What a kind begins with, as the first records were written, and the program that writes them now."""
AGAIN = f"{PROGRAM} page FOLDER"
"""The command that writes a page from its record."""
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


@dataclass(frozen=True, slots=True)
class Took:
    """How long the command that made a record took, in seconds, and on how many cores."""

    seconds: float
    cores: int

    @classmethod
    def until_now(cls) -> Took:
        """Of this process, since it started."""
        process = psutil.Process()
        cores = len(process.cpu_affinity()) if hasattr(process, "cpu_affinity") else os.cpu_count() or 1
        return cls(round(time.time() - process.create_time(), 1), cores)

    @property
    def words(self) -> str:
        minutes = round(self.seconds / 60)
        time = f"{minutes} min" if minutes else f"{round(self.seconds)} s"
        return f"{time} on {self.cores} {'core' if self.cores == 1 else 'cores'}"


def claim_page(out: Path, kind: str) -> None:
    """Make the folder of a page; raises `InputError` where it has files that `kind` did not write."""
    claim(out, kind, RESULTS)


def write_record(out: Path, kind: str, found: Any, **more: Any) -> Path:
    """results.json: `kind`, which says who wrote the folder, how long that took, `more`, and a dataclass or
    mapping of findings.

    Write it before anything else there. Raises `InputError` where the folder has files that `kind` did not
    write.
    """
    claim_page(out, kind)
    record = {"kind": kind, "took": to_json(Took.until_now()), **to_json(more), **to_json(found)}
    write_atomically(out / RESULTS, json.dumps(rounded(record), indent=1) + "\n")
    return out / RESULTS


def write_markdown(out: Path, template: Path, filters: Filters | None = None, **values: Any) -> Path:
    """README.md of a template and its values; `filters` are those that only this one uses."""
    environment = markdown_templates(template.parent)
    environment.filters |= {**FILTERS, **(filters or {})}
    write_atomically(out / PAGE, environment.get_template(template.name).render(**values))
    return out / PAGE


@dataclass(frozen=True, slots=True)
class Results:
    """The record of a folder as it was read, whose fields are asked for by type."""

    folder: Path
    record: Mapping[str, Any]

    @classmethod
    def of(cls, folder: Path) -> Results:
        """Raises `InputError` where there is no results.json, or none with a `kind`."""
        path = folder / RESULTS
        if not path.is_file():
            raise InputError(f"there is no {RESULTS} here, which a page is written from", path=folder)
        found = cls(folder, read_record(path, "the record of a page"))
        found.get("kind", str)
        return found

    @property
    def path(self) -> Path:
        return self.folder / RESULTS

    @property
    def kind(self) -> str:
        return str(self.record["kind"])

    def get(self, name: str, kind: Any, default: Any = MISSING) -> Any:
        """A field of this type; the default, where one is given, for a record without that field.

        Raises `InputError` that names file and field for anything else.
        """
        if name not in self.record:
            if default is not MISSING:
                return default
            raise InputError("missing: the page needs it", path=self.path, field=name)
        try:
            return from_json(kind, self.record[name])
        except ValidationError as error:
            fault, place = first_fault(error)
            why = fault if place is None else f"{fault} ({place})"
        except UNREADABLE as error:
            why = f"{type(error).__name__}: {first_line(error)}"
        raise InputError(f"not what {self.kind} writes: {why}", path=self.path, field=name)

    def found(self, kind: type[T]) -> T:
        """A dataclass whose fields are fields of the record."""
        hints = get_type_hints(kind)
        values = {
            one.name: self.get(one.name, hints[one.name], _default(one))
            for one in fields(kind)  # type: ignore[arg-type]
        }
        return kind(**values)

    def write_page(self, template: Path, filters: Filters | None = None, **values: Any) -> Path:
        """README.md, whose template may use `origin`: what made the record and what writes the page."""
        return write_markdown(self.folder, template, filters, origin=self._origin(), **values)

    def _origin(self) -> Markdown:
        command = self.get("command", str)
        took: Took | None = self.get("took", Took, None)
        program = self.kind.replace(FORMER, PROGRAM, 1)
        today = "" if command.startswith(program) else f" (today {code(program)})"
        clock = "" if took is None else f" in {took.words}, with what was cached"
        made = f"{code(command)}{today} made [{RESULTS}]({RESULTS}){clock}"
        return Markdown(f"{made}; {code(AGAIN)} writes this page from it")


def _default(field: Any) -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default
