"""What every section is given, and what it gives back to be written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lrp4rag.errors import InputError
from lrp4rag.experiments.paper.bench import Bench
from lrp4rag.experiments.paper.parts import FEWEST_SOURCES, Note, Part
from lrp4rag.experiments.paper.settings import Settings
from lrp4rag.features.parts import MATRIX, PROMPT, SIGNALS
from lrp4rag.training.cache import Cache
from lrp4rag.training.rows import Rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

REMEDIES = {
    "rows": "lrp4rag extract DATA --store STORE",
    SIGNALS: "lrp4rag extract DATA --store STORE --parts relevance,signals",
    PROMPT: "lrp4rag extract DATA --store STORE --parts relevance,signals,prompt",
    MATRIX: "lrp4rag extract DATA --store STORE --parts relevance --matrix 64x16",
}
"""What adds a part that a store lacks."""


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """The parts by generator, other stores of the same responses by name, and what computes and keeps."""

    parts: dict[str, Part]
    variants: dict[str, Rows]
    settings: Settings
    bench: Bench
    notes: tuple[Note, ...] = ()

    @property
    def cache(self) -> Cache:
        return self.bench.cache

    @property
    def key(self) -> dict[str, Any]:
        """Everything that a section's result depends on."""
        return {
            "settings": asdict(self.settings),
            "rows": {name: [part.digest, self.extras(part)] for name, part in self.parts.items()},
            "variants": {name: rows.digest for name, rows in self.variants.items()},
        }

    def extras(self, part: Part) -> list[str]:
        """Which of the parts that not every store has are there for all rows of a generator."""
        return [name for name in (SIGNALS, PROMPT, MATRIX) if part.has(name)]

    def lacking(self, need: str, what: str) -> tuple[Note, ...]:
        """A note that names the generators whose rows lack a part, if there are any."""
        names = [name for name, part in self.parts.items() if not part.has(need)]
        return (Note(f"{what} of {', '.join(names)}", REMEDIES[need]),) if names else ()

    @classmethod
    def open(
        cls,
        store: Path,
        *,
        variants: Mapping[str, Path],
        generators: Sequence[str],
        cache: Path,
        settings: Settings,
        jobs: int,
    ) -> Context:
        """Raises `InputError` where a store is none, or no generator has enough responses."""
        rows = Rows.open(store)
        names = generators or dict.fromkeys(map(str, rows.generators))
        parts = {name: Part.of(rows, name) for name in names}
        kept = {name: part for name, part in parts.items() if part.enough}
        if not kept:
            raise InputError(
                f"no generator has hallucinated and faithful responses to {FEWEST_SOURCES} sources each",
                path=store,
            )
        few = [name for name in parts if name not in kept]
        notes = (Note(f"responses of {', '.join(few)}: there are too few yet", REMEDIES["rows"]),)
        return cls(
            kept,
            {name: Rows.open(folder) for name, folder in variants.items()},
            settings,
            Bench(Cache.open(cache, jobs), settings.resamples, settings.seed),
            notes if few else (),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Exhibit:
    """What a result is shown as, by file name: figures, tables of numbers (CSV) and tables of words
    (Markdown), which the page repeats."""

    figures: dict[str, Figure] = field(default_factory=dict)
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    shown: dict[str, pd.DataFrame] = field(default_factory=dict)
