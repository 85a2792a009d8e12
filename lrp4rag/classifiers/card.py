"""The card: what a detector was trained on and with, and how well it did, as JSON beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from lrp4rag.classifiers.features import Features
from lrp4rag.errors import InputError
from lrp4rag.features.states import StateBlock
from lrp4rag.features.table import TokenTable
from lrp4rag.lrp.composites import composite_named
from lrp4rag.lrp.resample import Mode
from lrp4rag.reader.identity import require_identity
from lrp4rag.types import Bounded, Count, Finite, Positive, Probability


class _Frozen(BaseModel):
    # No number in a card is NaN or infinite: compared with, it would flag nothing, or everything.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


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
    length: Positive
    mode: Mode
    token_threshold: Finite | None = None

    @model_validator(mode="after")
    def _is_known(self) -> Self:
        _checked(Features, self.vector, self.length, self.mode)
        return self


class ReadingSettings(_Frozen):
    """The fields of a `Reading`."""

    top: Positive
    slope: Bounded
    offset: Bounded
    token_threshold: Probability
    sentence_top: Positive
    sentence_threshold: Probability
    shifts: dict[str, Bounded] = {}


class TokenInput(_Frozen):
    """The blocks of features that each token is judged by, and how a verdict is made of that."""

    kind: Literal["tokens"] = "tokens"
    blocks: dict[str, TokenTable | StateBlock]
    reading: ReadingSettings


class OperatingPoint(_Frozen):
    """A probability from which responses are called hallucinated, and what it did to responses of sources
    that the model had not seen."""

    threshold: Probability
    rule: str
    precision: Probability
    recall: Probability
    false_positive_rate: Probability


class Range(_Frozen):
    low: Finite
    high: Finite

    @model_validator(mode="after")
    def _rises(self) -> Self:
        _require_rising((self.low, self.high))
        return self


FiveQuantiles = Annotated[tuple[Finite, ...], Field(min_length=5, max_length=5)]


class Distribution(_Frozen):
    """Quantiles (5, 25, 50, 75 and 95 %) of a feature's mean over training sentences, by their labels."""

    faithful: FiveQuantiles
    hallucinated: FiveQuantiles

    @model_validator(mode="after")
    def _rises(self) -> Self:
        _require_rising(self.faithful)
        _require_rising(self.hallucinated)
        return self


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
    generators: dict[str, Count]
    failures: Count
    sources: list[str]
    command: str


class Located(_Frozen):
    """Of one way to mark text: metrics of tokens, of spans (characters) and of sentences."""

    tokens: Metrics
    spans: Metrics
    sentences: Metrics


class GeneratorEvidence(_Frozen):
    """The figures of one generator's responses, the controls' beside them."""

    rows: Count
    hallucinated: Count
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

    `sha256` is the hash of everything else in it, and `estimator_sha256` that of the file beside it.
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
    threshold: Probability
    rows: Count
    hallucinated: Count
    versions: dict[str, str]
    operating_points: dict[str, OperatingPoint] = {}
    faithful_quantiles: list[Probability] = []
    domain: dict[str, Range] = {}
    reference: dict[str, Distribution] = {}
    selections: list[Selection] = []
    training: Training | None = None
    evidence: Evidence | None = None
    estimator_sha256: str = ""
    sha256: str = ""

    @field_validator("composite")
    @classmethod
    def _is_known(cls, composite: str) -> str:
        return str(_checked(composite_named, composite).name)

    @field_validator("reader")
    @classmethod
    def _is_identity(cls, reader: dict[str, Any]) -> dict[str, Any]:
        return require_identity(reader)

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        if self.hallucinated > self.rows:
            raise ValueError("more responses are hallucinated than there are")
        _require_rising(self.faithful_quantiles)
        return self


def _checked(make: Callable[..., Any], *given: Any) -> Any:
    """What `make` makes; what it refuses is a fault of the card."""
    try:
        return make(*given)
    except InputError as error:
        raise ValueError(error.reason) from error


def _require_rising(numbers: Sequence[float]) -> None:
    if any(before > after for before, after in pairwise(numbers)):
        raise ValueError("quantiles and ranges must rise")


def package_versions() -> dict[str, str]:
    """Versions of what relevance and detectors depend on."""
    return {name: version(name) for name in ("lrp4rag", "torch", "transformers", "scikit-learn", "skops")}
