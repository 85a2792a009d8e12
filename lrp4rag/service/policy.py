"""`Policy`: what is done with a probability. The smallest one that routes."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from lrp4rag.hashes import json_hash
from lrp4rag.types import Probability

Action = Literal["serve", "mark", "withhold"]
Reason = Literal["grounded", "suspect", "insufficient evidence", "unlike training data", "unavailable"]

MARK = " [not verified]"
UNSUPPORTED = "[withheld: the retrieved passages do not support this sentence]"
UNAVAILABLE = "[withheld: this sentence could not be checked]"


class Policy(BaseModel):
    """Sentences are served, marked or withheld by their probability, whole responses by the detector's
    threshold. What has no verdict is never served as if it had one, unless `abstained` says so."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    mark_from: Probability | None = Field(
        default=None, description="Sentences are marked from this probability on (default: the detector's)."
    )
    withhold_from: Probability = Field(
        default=0.5, description="Sentences are withheld from this probability on."
    )
    abstained: Action = Field(
        default="withhold", description="What is unlike the training data: serve, mark or withhold."
    )
    unavailable: Literal["mark", "withhold"] = Field(
        default="withhold", description="What could not be judged: mark or withhold."
    )
    mark: str = Field(default=MARK, max_length=500, description="Follows what is marked.")
    notice: str = Field(
        default=UNSUPPORTED, max_length=500, description="In the place of what the passages do not support."
    )
    unavailable_notice: str = Field(
        default=UNAVAILABLE, max_length=500, description="In the place of what has no verdict."
    )

    @property
    def hash(self) -> str:
        """Names the policy in every decision."""
        return json_hash(self.model_dump(mode="json"))[:16]

    def sentence(self, probability: float, *, suspect: bool, abstained: bool) -> tuple[Action, Reason]:
        """For a sentence that was judged; `suspect` is the detector's own threshold."""
        if abstained and self.abstained != "serve":
            return self.abstained, "unlike training data"
        if probability >= self.withhold_from:
            return "withhold", "insufficient evidence"
        if suspect if self.mark_from is None else probability >= self.mark_from:
            return "mark", "suspect"
        return "serve", "grounded"

    def response(
        self, *, hallucinated: bool | None, suspect: bool, abstained: bool, worst: float = 0.0
    ) -> tuple[Action, Reason]:
        """For a whole response; `hallucinated` is None where there is no verdict, and `worst` is the
        probability of its most suspect sentence."""
        if abstained and self.abstained != "serve":
            return self.abstained, "unlike training data"
        if hallucinated is None and not abstained:
            return self.unavailable, "unavailable"
        if hallucinated or worst >= self.withhold_from:
            return "withhold", "insufficient evidence"
        return ("mark", "suspect") if suspect else ("serve", "grounded")

    def notice_for(self, reason: Reason) -> str:
        """What stands in the place of withheld text."""
        return self.notice if reason == "insufficient evidence" else self.unavailable_notice
