"""A composite: which linearisation each primitive of the network gets."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from lrp4rag.util.errors import InputError


@dataclass(frozen=True, slots=True)
class Composite:
    """A frozen record of choices, one per primitive; `lrp4rag.lrp.rules` says what each means.

    `share` is what each factor of a product receives (1: product rule, 1/2: split evenly).
    """

    name: str
    share: float
    norm: Literal["jacobian", "frozen"]
    activation: Literal["jacobian", "ratio", "frozen"]
    softmax: Literal["jacobian", "frozen"]

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


PAPER = Composite("paper", 1.0, "jacobian", "jacobian", "jacobian")
"""LRP4RAG (arXiv 2408.15533), eqs. 1-4 in the limit epsilon -> 0: this telescopes to Gradient x Input."""

ATTNLRP = Composite("attnlrp", 0.5, "frozen", "ratio", "jacobian")
"""AttnLRP (Achtibat et al., ICML 2024, arXiv 2402.05602). The default."""

CP_LRP = Composite("cp_lrp", 1.0, "frozen", "frozen", "frozen")
"""CP-LRP (Ali et al., ICML 2022). Sums over all input columns to the logit on a bias-free model."""

COMPOSITES = {composite.name: composite for composite in (PAPER, ATTNLRP, CP_LRP)}


def composite_named(name: str | Composite) -> Composite:
    """Return the composite called `name`; raises `InputError` that lists the known ones."""
    if isinstance(name, Composite):
        return name
    if name not in COMPOSITES:
        raise InputError(f"unknown composite '{name}'; choose from {', '.join(COMPOSITES)}")
    return COMPOSITES[name]
