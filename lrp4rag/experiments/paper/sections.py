"""The sections of a reproduction, in reading order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from lrp4rag.errors import InputError
from lrp4rag.experiments.paper import (
    ablations,
    distributions,
    findings,
    implicit,
    length,
    reliability,
    table2,
    table2_shown,
    thresholds,
    transfer,
)
from lrp4rag.experiments.paper.context import Context, Exhibit
from lrp4rag.training.cache import Cell


@dataclass(frozen=True, slots=True)
class Section:
    """`measure` computes a result of type `kind`, `show` makes figures and tables of it.

    `honest` sections have the honest protocol only.
    """

    name: str
    kind: Any
    measure: Callable[[Context], Any]
    show: Callable[[Any], Exhibit]
    honest: bool = True

    def cell(self, context: Context) -> Cell:
        """The whole result, under everything that it depends on."""
        key = {"what": "section", "name": self.name, **context.key}
        return Cell(key, self.kind, lambda: partial(self.measure, context))

    @property
    def template(self) -> str:
        return f"{self.name}.md.j2"


_ALL = (
    Section("table2", table2.Table2, table2.table2, table2_shown.show, honest=False),
    Section("thresholds", thresholds.Thresholds, thresholds.thresholds, thresholds.show, honest=False),
    Section("length", length.Lengths, length.length, length.show, honest=False),
    Section(
        "distributions",
        distributions.Distributions,
        distributions.distributions,
        distributions.show,
        honest=False,
    ),
    Section("ablations", ablations.Ablations, ablations.ablations, ablations.show),
    Section("implicit", implicit.Implicit, implicit.implicit, implicit.show),
    Section("reliability", reliability.Diagrams, reliability.diagrams, reliability.show),
    Section("transfer", transfer.Transfer, transfer.transfer, transfer.show),
    Section("findings", findings.Findings, findings.findings, findings.show),
)
SECTIONS: dict[str, Section] = {section.name: section for section in _ALL}


def sections_named(names: tuple[str, ...], protocols: tuple[str, ...]) -> list[Section]:
    """Those named (default: all that the protocols allow), in reading order.

    Raises `InputError` for an unknown one, or one that has the honest protocol only without it.
    """
    for name in names:
        if name not in SECTIONS:
            raise InputError(f"unknown section '{name}'; choose from {', '.join(SECTIONS)}")
        if SECTIONS[name].honest and "honest" not in protocols:
            raise InputError(f"section '{name}' has the honest protocol only (--protocol honest or both)")
    allowed = [section for section in SECTIONS.values() if not section.honest or "honest" in protocols]
    return [section for section in allowed if not names or section.name in names]
