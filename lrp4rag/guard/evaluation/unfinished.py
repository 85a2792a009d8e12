"""Results of an unfinished evaluation in a file, so that a killed evaluation goes on where it stopped."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from lrp4rag.example import Example
from lrp4rag.guard.evaluation.result import Judged
from lrp4rag.util.hashes import json_hash
from lrp4rag.util.strict_json import parse


class Unfinished:
    """A file with a line of JSON for each judged example, beside the file `out` of the evaluation. `how` is
    all that results depend on except the examples; lines of a run with another `how` are not read."""

    def __init__(self, out: Path, how: Sequence[str]) -> None:
        self.path = out.with_name(f"{out.name}.unfinished")
        self._run = json_hash(list(how))[:16]

    def judged(self, examples: Sequence[Example]) -> dict[str, Judged]:
        """Return the rows of examples that are judged already, by id."""
        if not self.path.exists():
            return {}
        with self.path.open(encoding="utf-8", errors="replace") as lines:
            rows = {row.result.id: row for row in map(self._row, lines) if row is not None}
        return {
            example.id: row
            for example in examples
            if (row := rows.get(example.id)) is not None and row.result.is_of(example)
        }

    def add(self, row: Judged) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            # The line before may have been cut.
            file.write("\n" + json.dumps({"run": self._run, "row": row.model_dump(mode="json")}))

    def done(self) -> None:
        self.path.unlink(missing_ok=True)

    def _row(self, line: str) -> Judged | None:
        """Return the row of a line; None for one of another run, or that was cut."""
        try:
            record = parse(line)
            return Judged.model_validate(record["row"]) if record["run"] == self._run else None
        except (ValueError, KeyError, TypeError):  # a ValidationError is a ValueError
            return None
