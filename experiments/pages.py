"""A folder of results: results.json, then a page, tables and figures that are made of it and of nothing else.

So a page can be written again (`python -m experiments page`) where its words changed and its results take
hours to compute. No number of a page is typed by hand.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TypeVar, get_type_hints

import pandas as pd
import psutil
from jinja2 import UndefinedError
from matplotlib.figure import Figure
from pydantic import ValidationError

from experiments.figures.style import save, save_table
from experiments.numbers import percent_interval, slug, verdict
from experiments.records import UNREADABLE, from_json, rounded, to_json
from lrp4rag.report.numbers import difference, number, percent, with_interval
from lrp4rag.report.templates import Markdown, code, markdown_templates
from lrp4rag.util.errors import InputError, first_line
from lrp4rag.util.files import check_folder, write_atomically
from lrp4rag.util.strict_json import read_record
from lrp4rag.util.types import first_fault

T = TypeVar("T")
PAGE, RESULTS = "README.md", "results.json"
PROGRAM = "python -m experiments"
TEMPLATES = Path(__file__).parent / "templates"
VIEWS = {
    "compare": "experiments.systems.comparison:view",
    "study": "experiments.study:view",
    "breakdown": "experiments.breakdown:view",
    "ragulator": "experiments.ragulator:view",
    "worth": "experiments.worth:view",
    "claims": "experiments.paper.claims:view",
    "lettuce": "experiments.lettuce:view",
}
"""By the command that writes results: the function that makes a `View` of them, for the template of that
name."""
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
_WRITTEN = {".md", ".csv", ".png", ".svg"}


@dataclass(frozen=True, slots=True)
class Took:
    """How long the command that made results took, in seconds, and on how many cores."""

    seconds: float
    cores: int

    @classmethod
    def until_now(cls) -> Took:
        """The time of this process since it started."""
        process = psutil.Process()
        cores = len(process.cpu_affinity()) if hasattr(process, "cpu_affinity") else os.cpu_count() or 1
        return cls(round(time.time() - process.create_time(), 1), cores)

    @property
    def words(self) -> str:
        minutes = round(self.seconds / 60)
        time = f"{minutes} min" if minutes else f"{round(self.seconds)} s"
        return f"{time} on {self.cores} {'core' if self.cores == 1 else 'cores'}"


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """What a page shows of results: values and filters of its template, and by file name figures and
    tables."""

    values: Mapping[str, Any]
    figures: Mapping[str, Figure] = field(default_factory=dict)
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    filters: Filters = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Results:
    """The results.json of a folder, whose fields are read by type."""

    folder: Path
    record: Mapping[str, Any]

    @classmethod
    def of(cls, folder: Path) -> Results:
        """Raises `InputError` where there is no results.json, or none with a `kind`."""
        path = folder / RESULTS
        if not path.is_file():
            raise InputError(f"there is no {RESULTS} here, which a page is written from", path=folder)
        results = cls(folder, read_record(path, "the record of a page"))
        results.get("kind", str)
        return results

    @property
    def path(self) -> Path:
        return self.folder / RESULTS

    @property
    def name(self) -> str:
        """The command that wrote it, whatever program that was part of."""
        return str(self.record["kind"]).rpartition(" ")[2]

    def get(self, name: str, kind: Any, default: Any = MISSING) -> Any:
        """A field of this type; the default, if there is one, for results without that field.

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
        raise InputError(f"not what {PROGRAM} {self.name} writes: {why}", path=self.path, field=name)

    def read(self, kind: type[T]) -> T:
        """A dataclass whose fields are fields of the record."""
        hints = get_type_hints(kind)
        values = {
            each.name: self.get(each.name, hints[each.name], _default(each))
            for each in fields(kind)  # type: ignore[arg-type]
        }
        return kind(**values)

    @property
    def origin(self) -> Markdown:
        """What made the results, and what writes their page."""
        command = self.get("command", str)
        took: Took | None = self.get("took", Took, None)
        today = "" if command.startswith(PROGRAM) else f" (today {code(f'{PROGRAM} {self.name}')})"
        clock = "" if took is None else f" in {took.words}, with what was cached"
        made = f"{code(command)}{today} made [{RESULTS}]({RESULTS}){clock}"
        return Markdown(f"{made}; {code(f'{PROGRAM} page FOLDER')} writes this page from it")


def _default(each: Any) -> Any:
    return each.default_factory() if each.default_factory is not MISSING else each.default


def write_results(out: Path, name: str, results: Any, command: str, **more: Any) -> list[Path]:
    """Write results.json of a command: a dataclass or mapping of results, `more`, the command and its time;
    then the page. Returns the files as `render` does.

    Raises `InputError` where the folder has files that this command did not write.
    """
    claim(out, name)
    more = {"kind": f"{PROGRAM} {name}", "took": Took.until_now(), "command": command, **more}
    record = {**to_json(more), **to_json(results)}
    write_atomically(out / RESULTS, json.dumps(rounded(record), indent=1) + "\n")
    return render(out)


def render(folder: Path) -> list[Path]:
    """Write the page, tables and figures of the results.json in a folder. The page is the first of the files
    returned, results.json the last.

    Raises `InputError` where there is no results.json, one of no known kind, or one that does not fit
    together.
    """
    results = Results.of(folder)
    name = results.name
    if name not in VIEWS:
        why = f"no page is known of '{name}'; there are pages of {', '.join(sorted(VIEWS))}"
        raise InputError(why, path=results.path, field="kind")
    try:
        view: View = resolve_name(VIEWS[name])(results)
        files = [save_table(table, folder / f"{stem}.csv") for stem, table in view.tables.items()]
        for stem, figure in view.figures.items():
            files += save(figure, folder / stem)
        page = write_page(folder, f"{name}.md.j2", view.filters, origin=results.origin, **view.values)
    except (LookupError, ValueError, UndefinedError) as error:
        why = f"the parts of {RESULTS} do not fit together ({type(error).__name__}: {first_line(error)})"
        raise InputError(why, path=results.path) from error
    return [page, *files, results.path]


def write_page(folder: Path, template: str, filters: Filters, **values: Any) -> Path:
    """README.md of a template and its values."""
    environment = markdown_templates(TEMPLATES)
    environment.filters |= {**FILTERS, **filters}
    write_atomically(folder / PAGE, environment.get_template(template).render(**values))
    return folder / PAGE


def claim(folder: Path, name: str, record: str = RESULTS) -> dict[str, Any]:
    """Make a folder for the results of a command. Returns what the `record` of an earlier run says, {}
    without one; it is known by its `kind`.

    Raises `InputError` where nothing can be written, and where there are pages, tables or figures and no
    record of this command.
    """
    check_folder(folder).mkdir(parents=True, exist_ok=True)
    try:
        earlier = read_record(folder / record, "a record")
    except (OSError, InputError):
        earlier = {}
    if str(earlier.get("kind", "")).rpartition(" ")[2] == name.rpartition(" ")[2]:
        return earlier
    others = [entry.name for entry in folder.iterdir() if entry.suffix in _WRITTEN or entry.name == record]
    if others:
        why = f"this folder has files that {name} did not write ({min(others)}); name another"
        raise InputError(why, path=folder)
    return {}
