"""The card: what a detector was trained on and with, and how well it did, as JSON beside it."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from lrp4rag.features.states import StateBlock
from lrp4rag.features.table import TokenTable
from lrp4rag.lrp.resample import Mode


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Interval(_Frozen):
    """A value and its 95 % bootstrap interval over sources; None where it is undefined."""

    value: float | None
    low: float | None
    high: float | None


Metrics = dict[str, Interval]


class VectorInput(_Frozen):
    """A vector resampled to one length. Tokens are suspect where smoothed relevance, in logits, is below
    `token_threshold`."""

    kind: Literal["vector"] = "vector"
    vector: str
    length: int
    mode: Mode
    token_threshold: float | None = None


class ReadingSettings(_Frozen):
    """The fields of a `Reading`."""

    top: int
    slope: float
    offset: float
    token_threshold: float
    sentence_top: int
    sentence_threshold: float
    shifts: dict[str, float] = {}


class TokenInput(_Frozen):
    """The blocks of features that each token is judged by, and how a verdict is made of that."""

    kind: Literal["tokens"] = "tokens"
    blocks: dict[str, TokenTable | StateBlock]
    reading: ReadingSettings


class OperatingPoint(_Frozen):
    """A probability from which responses are called hallucinated, and what it did to responses of sources
    that the model had not seen."""

    threshold: float
    rule: str
    precision: float
    recall: float
    false_positive_rate: float


class Range(_Frozen):
    low: float
    high: float


class Distribution(_Frozen):
    """Quantiles (5, 25, 50, 75 and 95 %) of a feature's mean over training sentences, by their labels."""

    faithful: tuple[float, ...]
    hallucinated: tuple[float, ...]


class Selection(_Frozen):
    """Something that was chosen: among what, by what rule, and on which data."""

    what: str
    chosen: str
    among: str
    rule: str
    data: str


class Training(_Frozen):
    """Where the rows came from. `sources` are content hashes: `evaluate` refuses rows it has seen."""

    data_hash: str
    generators: dict[str, int]
    failures: int
    sources: list[str]
    command: str


class Located(_Frozen):
    """Of one way to mark text: metrics of tokens, of spans (characters) and of sentences."""

    tokens: Metrics
    spans: Metrics
    sentences: Metrics


class GeneratorEvidence(_Frozen):
    """The figures of one generator's responses, the controls' beside them."""

    rows: int
    hallucinated: int
    metrics: Metrics
    controls: dict[str, Metrics]
    located: dict[str, Located]


class Evidence(_Frozen):
    """Cross-validated figures: of the detector, of the controls beside it, and of its tokens; over all
    responses together, and by generator where it was trained on tokens."""

    protocol: str
    metrics: Metrics
    controls: dict[str, Metrics]
    tokens: Metrics
    generators: dict[str, GeneratorEvidence] = {}


class Card(_Frozen):
    """Everything but the fitted estimator; `training` and `evidence` are what `train` adds.

    `domain`, `operating_points`, `faithful_quantiles` and `reference` come with token detectors.
    """

    format: int
    classifier: str
    settings: str
    reader: dict[str, Any]
    composite: str
    target: str
    input: Annotated[VectorInput | TokenInput, Field(discriminator="kind")]
    feature_version: int
    threshold: float
    rows: int
    hallucinated: int
    versions: dict[str, str]
    operating_points: dict[str, OperatingPoint] = {}
    faithful_quantiles: list[float] = []
    domain: dict[str, Range] = {}
    reference: dict[str, Distribution] = {}
    selections: list[Selection] = []
    training: Training | None = None
    evidence: Evidence | None = None
    estimator_sha256: str = ""


def package_versions() -> dict[str, str]:
    """Versions of what relevance and detectors depend on."""
    return {name: version(name) for name in ("lrp4rag", "torch", "transformers", "scikit-learn", "skops")}
