"""`Feature`: what a number of each token is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Feature:
    """A number of each token: its `name`, `range`, `definition` and `unit` ("-" without one)."""

    name: str
    range: str
    definition: str
    unit: str = "-"
