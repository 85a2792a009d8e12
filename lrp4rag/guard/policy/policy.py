"""`Policy`: the actions on answers and the words for their readers, as a YAML file has them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from lrp4rag.guard.checks.check import Check
from lrp4rag.guard.checks.registry import CHECKS, make_check
from lrp4rag.guard.policy.reasons import Reason
from lrp4rag.util.errors import InputError
from lrp4rag.util.hashes import json_hash
from lrp4rag.util.text import one_line
from lrp4rag.util.types import Number, Positive, Probability, first_fault
from lrp4rag.util.yaml_file import line_of, read_yaml

if TYPE_CHECKING:
    from lrp4rag.classifiers.verdict import Contradiction

LONGEST = 1000
LONGEST_VALUE = 80
"""Characters that are quoted of a value."""
FIELDS = ("sources", "contact", "sides", "outdated", "condition", "contradictions")
CONTRADICTION_FIELDS = ("said", "passage", "instead")
"""Fields of `instead` and of `correction`."""
_FIELD = re.compile(r"\{([^{}]*)\}")


def _with_known_fields(template: str) -> str:
    for name in _FIELD.findall(template):
        if name not in (*FIELDS, *CONTRADICTION_FIELDS):
            names = ", ".join(f"{{{field}}}" for field in (*FIELDS, *CONTRADICTION_FIELDS))
            raise ValueError(f"{{{name}}} is no place; there are: {names}")
    return template


Template = Annotated[str, Field(max_length=LONGEST), AfterValidator(_with_known_fields)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


class Texts(_Strict):
    """{sources} are the closest sources, {contact} is whom to ask, {sides} what passages say against each
    other, {outdated} which of them do not hold now, {condition} what is left out, {contradictions} each
    value that a passage has otherwise (`instead`: {said}, {passage} and {instead}). Braces in what is
    filled in are text."""

    mark: Template = Field(default=" [not verified]", description="Follows a suspect sentence.")
    correction: Template = " [passage {passage} says “{instead}”]"
    """Follows a sentence that is served though a passage has another value."""
    notice: Template = "[withheld: the retrieved passages do not support this sentence]"
    """In the place of a sentence that is withheld."""
    contradicted_notice: Template = "[withheld: passage {passage} says “{instead}”]"
    """In the place of a sentence that is withheld since a passage has another value."""
    distrusted_notice: Template = "[withheld: a citation or a sign in this sentence could not be confirmed]"
    """In the place of one that is withheld for its citation, disguise or planted order."""
    unavailable_notice: Template = "[withheld: this sentence could not be checked]"
    """In the place of a sentence that has no verdict."""
    uncertain: Template = "Parts of this answer could not be verified in the available documents."
    """Under an answer with suspect sentences."""
    contradicted: Template = "This answer could not be confirmed in full. {contradictions}"
    """Under an answer with values that a passage has otherwise."""
    instead: Template = "The answer says “{said}”; passage {passage} says “{instead}”."
    """Each of {contradictions}."""
    miscited: Template = "A citation in this answer could not be confirmed."
    """Under an answer with a citation that does not support it."""
    unchecked: Template = "This answer, or a part of it, could not be checked."
    """Under an answer that could not be judged, or not all of it."""
    conflict: Template = "The available documents contradict each other: {sides}"
    """Under an answer on which passages contradict each other."""
    outdated: Template = "This answer rests on a document that does not hold now: {outdated}"
    """Under an answer from an expired, superseded or future document."""
    omitted: Template = "This holds under a condition: {condition}"
    """Under an answer that leaves out a condition."""
    insufficient: Template = (
        "The answer could not be confirmed from the available documents. {contradictions} {sources} {contact}"
    )
    """In the place of an answer that is not supported."""
    gap: Template = "The available documents do not answer this question. {sources} {contact}"
    """Where no passage was fit to answer from."""
    fabricated: Template = (
        "The answer is withheld: it cites a document that was not retrieved. {sources} {contact}"
    )
    """In the place of an answer with such a citation."""
    escalated: Template = "The answer is withheld until a person has reviewed it. {sources} {contact}"
    """In the place of an answer that a reviewer decides on."""
    unlike: Template = (
        "The answer is withheld: how well it is supported could not be told. {sources} {contact}"
    )
    """In the place of an answer that is unlike the training data."""
    unavailable: Template = "The answer is withheld: it could not be checked. {sources} {contact}"
    """In the place of an answer that could not be judged."""
    closest: Template = Field(default="Closest sources: {sources}.", description="What {sources} becomes.")
    contact: Template = Field(default="", description="Whom to ask: what {contact} becomes.")


def corrected(template: str, contradiction: Contradiction) -> str:
    """Return the template filled with a contradiction, with the white space that the template begins with."""
    values = {
        "said": one_line(contradiction.text, LONGEST_VALUE),
        "passage": str(contradiction.passage + 1),
        "instead": one_line(contradiction.instead, LONGEST_VALUE),
    }
    gap = template[: len(template) - len(template.lstrip())]
    return gap + filled(template, values)


def filled(template: str, values: Mapping[str, str]) -> str:
    """Return the template with its fields filled, without white space at its ends and doubled spaces."""
    text = _FIELD.sub(lambda match: values.get(match[1], ""), template)
    return re.sub(r" {2,}", " ", text).strip()


Alarm = Literal["mark", "disclose", "escalate", "withhold"]
"""Actions for flagged or unjudged answers, which are never served unmarked: serve with a stated uncertainty
and marks; serve with what the passages say against it, or against each other; withhold until a reviewer
decides; withhold."""
Action = Literal["serve", Alarm]
ACTIONS: tuple[Action, ...] = get_args(Action)
"""From the mildest to the strictest."""
WITHHELD: tuple[Action, ...] = ("withhold", "escalate")
"""Actions by which no user sees the answer."""


class Claims(_Strict):
    """Actions by the statuses of an answer's sentences. In a stream, each sentence is decided on as the
    answer up to its end would be."""

    contradicted: Alarm = Field(default="disclose", description="A passage has another value.")
    unsupported: Alarm = Field(default="mark", description="No passage supports it.")
    most: Alarm | None = "withhold"
    """More sentences are contradicted or unsupported than supported."""


class Band(_Strict):
    """An answer is in the first band whose shares it reaches."""

    action: Action
    reason: Reason
    faithfulness: Probability = 0.0
    """Least share of its sentences that are supported."""
    facts: Probability = Field(default=0.0, description="Least share of its facts that are grounded.")


class Rules(_Strict):
    """Actions on the findings of checks; without an action there is no rule."""

    null: Action | None = Field(default="withhold", description="No passage is fit to answer from.")
    fabricated: Action | None = Field(default="withhold", description="A citation of what was not retrieved.")
    misattributed: Action | None = "mark"
    """A citation that does not support its sentence."""
    disguised: Action | None = "escalate"
    """Text that looks as what it is not: invisible signs, letters of two scripts."""
    planted: Action | None = "escalate"
    """The answer rests on a passage that gives orders to models."""
    conflict: Action | None = "disclose"
    """Passages contradict each other on what the answer says."""
    outdated: Action | None = "disclose"
    """The answer rests on a passage that is expired, superseded or not yet effective."""
    omitted: Action | None = None
    """A condition of the passage that the answer rests on is left out."""


class Sentences(_Strict):
    """Settings for the sentences of a stream."""

    stop_after: Positive | None = None
    """Withheld sentences after which the stream stops."""


class Policy(_Strict):
    """The strictest of what holds decides: the statuses of sentences, what checks found, what could not be
    judged. What is flagged, or has no verdict, is never served unmarked."""

    name: str = Field(default="balanced", max_length=100, description="For people.")
    rules: Rules = Field(default=Rules(), description="Actions on the findings of checks.")
    claims: Claims = Field(default=Claims(), description="Actions by the statuses of sentences.")
    bands: tuple[Band, ...] = Field(default=(), max_length=100)
    """Actions by shares of supported sentences and facts as well."""
    sentences: Sentences = Field(default=Sentences(), description="Settings for sentences of streams.")
    abstained: Alarm = Field(default="withhold", description="Action on an answer unlike the training data.")
    unavailable: Alarm = Field(
        default="withhold", description="Action on an answer that could not be judged."
    )
    checks: dict[str, dict[str, Any]] = {name: {} for name in CHECKS}
    """The checks that run, and their settings."""
    budget: Number = Field(default=2.0, gt=0, le=60, description="Seconds of a check.")
    texts: Texts = Field(default=Texts(), description="Texts for the readers of an answer.")

    @field_validator("bands")
    @classmethod
    def _ends(cls, bands: tuple[Band, ...]) -> tuple[Band, ...]:
        if bands and (bands[-1].faithfulness or bands[-1].facts):
            raise ValueError("the last band takes what is in no other: leave its shares out")
        return bands

    @model_validator(mode="after")
    def _can_check(self) -> Policy:
        for name, settings in self.checks.items():
            try:
                make_check(name, settings)
            except (ValueError, InputError) as error:
                raise ValueError(f"checks: {error}") from None
        return self

    @property
    def hash(self) -> str:
        """Return the hash that names the policy in every decision."""
        return json_hash(self.model_dump(mode="json"))[:16]

    @cached_property
    def enabled_checks(self) -> dict[str, Check]:
        """Return the checks that run, by name."""
        return {name: make_check(name, settings) for name, settings in self.checks.items()}


def load_policy(path: Path | None) -> Policy:
    """Return the policy in a YAML file, by default the default policy. Raises `InputError` with file, line
    and field."""
    try:
        return Policy() if path is None else Policy.model_validate(read_yaml(path))
    except ValidationError as error:
        message, field = first_fault(error)
        raise InputError(message, path=path, line=line_of(path, field), field=field) from None
