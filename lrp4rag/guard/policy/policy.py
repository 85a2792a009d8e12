"""`Policy`: what is done with answers, as a YAML file has it."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from lrp4rag.guard.checks.check import Check
from lrp4rag.guard.checks.registry import CHECKS, make_check
from lrp4rag.guard.policy.reasons import Reason
from lrp4rag.guard.policy.texts import Texts
from lrp4rag.util.errors import InputError
from lrp4rag.util.hashes import json_hash
from lrp4rag.util.types import Number, Positive, Probability, first_fault
from lrp4rag.util.yaml_file import line_of, read_yaml

Action = Literal["serve", "mark", "disclose", "escalate", "withhold"]
"""Serve; serve with a stated uncertainty and marks; serve with what the passages say against it, or against
each other; withhold until a reviewer decides; withhold."""
ACTIONS: tuple[Action, ...] = ("serve", "mark", "disclose", "escalate", "withhold")
"""From the mildest to the strictest."""
Alarm = Literal["mark", "disclose", "escalate", "withhold"]
"""Actions for flagged or unjudged answers: it is never served unmarked."""
WITHHELD: tuple[Action, ...] = ("withhold", "escalate")
"""By which nobody sees what was written."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


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
    def _ends(cls, given: tuple[Band, ...]) -> tuple[Band, ...]:
        if given and (given[-1].faithfulness or given[-1].facts):
            raise ValueError("the last band takes what is in no other: leave its shares out")
        return given

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
        """Names the policy in every decision."""
        return json_hash(self.model_dump(mode="json"))[:16]

    @cached_property
    def enabled_checks(self) -> dict[str, Check]:
        """The checks that run, by name."""
        return {name: make_check(name, settings) for name, settings in self.checks.items()}


def load_policy(path: Path | None) -> Policy:
    """Return the policy in a YAML file, the default one without. Raises `InputError` naming file, line and
    field."""
    return Policy() if path is None else policy_of(read_yaml(path), path)


def policy_of(given: dict[str, Any], path: Path | None = None) -> Policy:
    """Raises `InputError` naming the line of the file."""
    try:
        return Policy.model_validate(given)
    except ValidationError as error:
        message, field = first_fault(error)
        raise InputError(message, path=path, line=line_of(path, field), field=field) from None
