"""Results on disk: a line of JSON per experiment, sample and method, so that a killed run goes on."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lrp4rag.errors import InputError
from lrp4rag.files import check_folder, read_bytes, write_atomically
from lrp4rag.strict_json import parse, read_record

LARGEST = 1 << 30  # bytes of the rows
ROWS, CONFIGURATION = "rows.jsonl", "configuration.json"

Key = tuple[str, str, str]


@dataclass(frozen=True)
class Rows:
    """What is known so far, by (experiment, sample, method)."""

    path: Path
    found: dict[Key, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def open(cls, folder: Path, configuration: dict[str, Any]) -> Rows:
        """Open or create; raises `InputError` where it is damaged, or was made with another configuration."""
        check_folder(folder).mkdir(parents=True, exist_ok=True)
        known, rows = folder / CONFIGURATION, cls(folder / ROWS)
        if known.exists():
            _require_same(known, configuration)
        elif rows.path.exists():
            raise InputError(f"there are rows but no {CONFIGURATION}; name another folder", path=folder)
        else:
            write_atomically(known, json.dumps(configuration, indent=2) + "\n")
        rows._read()
        return rows

    def missing(self, experiment: str, sample: str, methods: list[str]) -> list[str]:
        return [name for name in methods if (experiment, sample, name) not in self.found]

    def add(self, experiment: str, sample: str, values: dict[str, dict[str, object]]) -> None:
        """Append the values of several methods for one sample."""
        lines = []
        for method, row in values.items():
            self.found[experiment, sample, method] = row
            key = {"experiment": experiment, "sample": sample, "method": method}
            lines.append(json.dumps({**key, "values": row}) + "\n")
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write("".join(lines))

    def of(self, experiment: str, samples: list[str], method: str) -> list[dict[str, Any]]:
        return [self.found[experiment, sample, method] for sample in samples]

    def _read(self) -> None:
        if not self.path.exists():
            return
        content = read_bytes(self.path, LARGEST)
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):  # the last line was being written when the run was killed
            write_atomically(self.path, whole)
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                row = parse(line)
                if not isinstance(row["values"], dict):
                    raise TypeError("its values are no object")
                self.found[row["experiment"], row["sample"], row["method"]] = row["values"]
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"not a row: {error}", path=self.path, line=number) from error


def _require_same(path: Path, wanted: dict[str, Any]) -> None:
    found = read_record(path, "a configuration")
    for name in sorted({*found, *wanted}):
        if found.get(name) != wanted.get(name):
            raise InputError(
                f"the folder was made with {name} {found.get(name)}, not {wanted.get(name)}; "
                "name another folder with --out",
                path=path,
            )
