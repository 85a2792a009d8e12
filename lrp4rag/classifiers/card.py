"""The card: what a detector was trained on and with, and how well it did, as JSON beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializeAsAny,
    field_validator,
    model_validator,
)

from lrp4rag.classifiers.decision import DecisionRule
from lrp4rag.classifiers.vectors import VECTORS, Features
from lrp4rag.features.blocks import Block, reads_comparer
from lrp4rag.features.entailment import OF_ALARMS
from lrp4rag.features.plain import PlainTable, StateBlock
from lrp4rag.lrp.composites import composite_named
from lrp4rag.lrp.resampling import Mode
from lrp4rag.reader.identity import require_identity
from lrp4rag.util.errors import InputError
from lrp4rag.util.types import Count, Finite, Positive, Probability, Whole


class _Frozen(BaseModel):
    # No number in a card is NaN or infinite: compared with, it would flag nothing, or everything.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Interval(_Frozen):
    """A value and its 95 % bootstrap interval over sources; None where it is undefined."""

    value: Finite | None
    low: Finite | None
    high: Finite | None


Metrics = dict[str, Interval]


class ModelInput(_Frozen):
    """The input of a kind of model, as the card records it. A subclass per kind is known by its `kind`."""

    kinds: ClassVar[dict[str, type[ModelInput]]] = {}

    kind: str

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        if isinstance(kind := cls.model_fields["kind"].default, str):  # what several kinds share has none
            ModelInput.kinds[kind] = cls

    def words(self) -> str:
        """Return the features, in one line. `report/model_card_<kind>.md.j2` is the paragraph for a page."""
        raise NotImplementedError

    @property
    def generator_shifts(self) -> Mapping[str, float]:
        """Log odds that a known generator adds."""
        return {}


class VectorInput(ModelInput):
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

    def words(self) -> str:
        return f"{VECTORS[self.vector].words}, resampled to {self.length} ({self.mode})"


def compares(blocks: Mapping[str, Block], alarms: Mapping[str, Sequence[str]]) -> bool:
    """Say whether some features of blocks or alarms are a comparer's."""
    columns = (name for names in alarms.values() for name in names)
    return reads_comparer(blocks.values()) or any(name.startswith(OF_ALARMS) for name in columns)


class AlarmInput(ModelInput):
    """The rule that decides (`reading`), the features that each of its alarms reads, and the digest of the
    `comparer` that some features are of, "" for none."""

    reading: DecisionRule
    alarms: dict[str, tuple[str, ...]] = {}
    comparer: str = ""

    @property
    def compares(self) -> bool:
        """Whether it reads features of a comparer."""
        return compares({}, self.alarms)

    @model_validator(mode="after")
    def _has_its_comparer(self) -> Self:
        if bool(self.comparer) != self.compares:
            raise ValueError("it has no comparer for its features, or one for none")
        return self

    @model_validator(mode="after")
    def _has_a_rule_for_each(self) -> Self:
        if self.alarms.keys() != self.reading.alarm_weights.keys():
            raise ValueError("its alarms are not those of its rule")
        if any(len(set(columns)) < len(columns) for columns in self.alarms.values()):
            raise ValueError("an alarm reads a feature twice")
        return self


class TokenInput(AlarmInput):
    """With alarms, the blocks of features that each token is scored by."""

    kind: Literal["tokens"] = "tokens"
    blocks: dict[str, PlainTable | StateBlock]

    @property
    def compares(self) -> bool:
        return compares(self.blocks, self.alarms)

    def words(self) -> str:
        return f"of tokens: {', '.join(self.blocks)}; a response's score is made of its highest"

    @property
    def generator_shifts(self) -> Mapping[str, float]:
        return self.reading.shifts


class TextInput(AlarmInput):
    """Alarms alone: what a detector that compares text reads."""

    kind: Literal["text"] = "text"

    def words(self) -> str:
        return "of the text alone: its values, words and conditions beside those of the passages"


def _of_its_kind(entry: Any) -> ModelInput:
    if isinstance(entry, ModelInput):
        return entry
    kind = str(entry.get("kind")) if isinstance(entry, dict) else ""
    if kind not in ModelInput.kinds:
        raise ValueError(f"no kind of detector; known are {', '.join(ModelInput.kinds)}")
    return ModelInput.kinds[kind].model_validate(entry)


class OperatingPoint(_Frozen):
    """A probability from which responses are called hallucinated, and what it did to responses of sources
    that the model had not seen."""

    threshold: Probability
    rule: str
    precision: Probability
    recall: Probability
    false_positive_rate: Probability


def _rising(numbers: Any) -> Any:
    if any(before > after for before, after in pairwise(numbers)):
        raise ValueError("quantiles and ranges must rise")
    return numbers


class Range(_Frozen):
    low: Finite
    high: Finite

    @model_validator(mode="after")
    def _rises(self) -> Self:
        _rising((self.low, self.high))
        return self


FiveQuantiles = Annotated[tuple[Finite, ...], Field(min_length=5, max_length=5), AfterValidator(_rising)]


class Distribution(_Frozen):
    """Quantiles (5, 25, 50, 75 and 95 %) of a feature's mean over training sentences, by their labels."""

    faithful: FiveQuantiles
    hallucinated: FiveQuantiles


class Selection(_Frozen):
    """Something that was chosen: among what, by what rule, and on which data."""

    what: str
    chosen: str
    among: str
    rule: str
    data: str


class Training(_Frozen):
    """The source of the rows. `sources` are content hashes: `evaluate` refuses rows it has seen."""

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
    responses together, and by generator where it was trained on tokens.

    `sets` are the metrics of further sets of rows.
    """

    protocol: str
    metrics: Metrics
    controls: dict[str, Metrics]
    tokens: Metrics
    generators: dict[str, GeneratorEvidence] = {}
    sets: dict[str, Metrics] = {}


class Card(_Frozen):
    """Everything but the fitted estimator; `training` and `evidence` are what `train` adds.

    `sha256` is the hash of everything else in it, and `estimator_sha256` that of the file beside it.
    `domain`, `operating_points`, `faithful_quantiles`, `reference` and `prevalence` (the part of responses
    that was hallucinated where probabilities were fitted) come with token detectors.
    """

    format: Whole
    classifier: str
    settings: str
    reader: dict[str, Any]
    composite: str
    target: str
    input: Annotated[SerializeAsAny[ModelInput], BeforeValidator(_of_its_kind)]
    feature_version: Whole
    threshold: Probability
    rows: Count
    hallucinated: Count
    versions: dict[str, str]
    operating_points: dict[str, OperatingPoint] = {}
    faithful_quantiles: Annotated[list[Probability], AfterValidator(_rising)] = []
    prevalence: Probability = 0.0
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
        return self


def _checked(make: Callable[..., Any], *arguments: Any) -> Any:
    """Call `make`; what it refuses is a fault of the card."""
    try:
        return make(*arguments)
    except InputError as error:
        raise ValueError(error.reason) from error


def package_versions() -> dict[str, str]:
    """Return the versions of what relevance and detectors depend on."""
    return {name: version(name) for name in ("lrp4rag", "torch", "transformers", "scikit-learn")}
