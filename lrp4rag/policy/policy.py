"""`Policy`: what is done with answers, as a YAML file has it."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from lrp4rag.checks.check import Check
from lrp4rag.checks.registry import CHECKS, make_check
from lrp4rag.errors import InputError
from lrp4rag.hashes import json_hash
from lrp4rag.policy.texts import Texts
from lrp4rag.types import Positive, Probability, first_fault
from lrp4rag.yaml_file import line_of, read_yaml

Action = Literal["serve", "mark", "disclose", "escalate", "withhold"]
"""Serve; serve with a stated uncertainty and marks; serve with what the passages say against each other;
withhold until a reviewer decides; withhold."""
ACTIONS: tuple[Action, ...] = ("serve", "mark", "disclose", "escalate", "withhold")
"""From the mildest to the gravest."""
WITHHELD: tuple[Action, ...] = ("withhold", "escalate")
"""By which nobody sees what was written."""
Reason = Literal[
    "grounded",
    "suspect",
    "insufficient evidence",
    "knowledge gap",
    "conflict",
    "outdated source",
    "fabricated citation",
    "misattributed citation",
    "disguised text",
    "planted instructions",
    "omitted condition",
    "unlike training data",
    "unavailable",
]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Band(_Strict):
    """An answer is in the first band whose shares it reaches."""

    action: Action
    reason: Reason
    faithfulness: Probability = Field(
        default=0.0, description="Least share of its sentences that are grounded."
    )
    facts: Probability = Field(default=0.0, description="Least share of its facts that are grounded.")


BANDS = (
    Band(action="serve", reason="grounded", faithfulness=0.85, facts=0.80),
    Band(action="mark", reason="suspect", faithfulness=0.65),
    Band(action="withhold", reason="insufficient evidence", faithfulness=0.40),
    Band(action="withhold", reason="knowledge gap"),
)
"""Of the default policy. What reaches the first share and not the second falls to the band below."""


class Rules(_Strict):
    """What is done where a check finds something; the first rule that holds decides, and without an action
    there is none."""

    null: Action | None = Field(default="withhold", description="No passage is fit to answer from.")
    fabricated: Action | None = Field(default="withhold", description="A citation of what was not retrieved.")
    misattributed: Action | None = Field(
        default="escalate", description="A citation that does not support its sentence."
    )
    disguised: Action | None = Field(
        default="escalate",
        description="Text that looks as what it is not: invisible signs, letters of two scripts.",
    )
    planted: Action | None = Field(
        default="escalate", description="The answer rests on a passage that gives orders to models."
    )
    conflict: Action | None = Field(
        default="disclose", description="Passages contradict each other on what the answer says."
    )
    outdated: Action | None = Field(
        default="disclose",
        description="The answer rests on a passage that is expired, superseded or not yet effective.",
    )
    omitted: Action | None = Field(
        default="mark",
        description="A condition of the passage that the answer rests on is left out. It decides last.",
    )


class Sentences(_Strict):
    """What is done with a sentence of a stream, by the probability that it is hallucinated."""

    mark_from: Probability | None = Field(default=None, description="Marked (default: the detector's).")
    withhold_from: Probability = Field(default=0.5, description="Replaced by a notice.")
    stop_after: Positive | None = Field(
        default=None, description="The stream stops after so many sentences were withheld."
    )


class Policy(_Strict):
    """What has no verdict is never served as if it had one, unless `abstained` says so."""

    name: str = Field(default="balanced", max_length=100, description="For people.")
    rules: Rules = Field(default=Rules(), description="What is done where a check finds something.")
    bands: tuple[Band, ...] = Field(
        default=BANDS,
        min_length=1,
        max_length=100,
        description="What is done by shares of grounded sentences and facts.",
    )
    withhold_from: Probability | None = Field(
        default=None, description="A response is withheld from this probability on, before any band."
    )
    sentences: Sentences = Field(default=Sentences(), description="What is done with sentences of streams.")
    abstained: Action = Field(default="withhold", description="What is unlike the training data.")
    unavailable: Literal["mark", "escalate", "withhold"] = Field(
        default="withhold", description="What could not be judged."
    )
    checks: dict[str, dict[str, Any]] = Field(
        default={name: {} for name in CHECKS}, description="The checks that run, and their settings."
    )
    budget: float = Field(default=2.0, gt=0, le=60, description="Seconds of a check.")
    texts: Texts = Field(default=Texts(), description="What readers of an answer are told.")

    @field_validator("bands")
    @classmethod
    def _ends(cls, given: tuple[Band, ...]) -> tuple[Band, ...]:
        if given[-1].faithfulness or given[-1].facts:
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
    def made(self) -> dict[str, Check]:
        """The checks that run, by name."""
        return {name: make_check(name, settings) for name, settings in self.checks.items()}

    def sentence(self, probability: float, *, suspect: bool, abstained: bool) -> tuple[Action, Reason]:
        """For a sentence that was judged; `suspect` is the detector's own threshold."""
        if abstained and self.abstained != "serve":
            return self.abstained, "unlike training data"
        if probability >= self.sentences.withhold_from:
            return "withhold", "insufficient evidence"
        mark_from = self.sentences.mark_from
        if suspect if mark_from is None else probability >= mark_from:
            return "mark", "suspect"
        return "serve", "grounded"


def load_policy(path: Path | None) -> Policy:
    """The policy in a YAML file, the default one without. Raises `InputError` naming file, line and field."""
    return Policy() if path is None else policy_of(read_yaml(path), path)


def policy_of(given: dict[str, Any], path: Path | None = None) -> Policy:
    """Raises `InputError` naming the line of the file."""
    try:
        return Policy.model_validate(given)
    except ValidationError as error:
        message, field = first_fault(error)
        raise InputError(message, path=path, line=line_of(path, field), field=field) from None
