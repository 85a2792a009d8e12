"""The card: what a detector was trained on and with, and how well it did, as JSON beside it."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from pydantic import BaseModel, ConfigDict

from lrp4rag.lrp.resample import Mode


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Interval(_Frozen):
    """A value and its 95 % bootstrap interval over sources; None where it is undefined."""

    value: float | None
    low: float | None
    high: float | None


Metrics = dict[str, Interval]


class Training(_Frozen):
    """Where the rows came from. `sources` are content hashes: `evaluate` refuses rows it has seen."""

    data_hash: str
    generators: dict[str, int]
    failures: int
    sources: list[str]
    command: str


class Evidence(_Frozen):
    """Cross-validated figures: of the detector, of the controls beside it, and of its tokens."""

    protocol: str
    metrics: Metrics
    controls: dict[str, Metrics]
    tokens: Metrics


class Card(_Frozen):
    """Everything but the fitted estimator; `training` and `evidence` are what `train` adds."""

    format: int
    classifier: str
    settings: str
    reader: dict[str, Any]
    composite: str
    target: str
    vector: str
    length: int
    mode: Mode
    feature_version: int
    threshold: float
    token_threshold: float | None
    rows: int
    hallucinated: int
    versions: dict[str, str]
    training: Training | None = None
    evidence: Evidence | None = None
    estimator_sha256: str = ""


def package_versions() -> dict[str, str]:
    """Versions of what relevance and detectors depend on."""
    return {name: version(name) for name in ("lrp4rag", "torch", "transformers", "scikit-learn", "skops")}
