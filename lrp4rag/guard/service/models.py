"""The fields of requests and replies."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from lrp4rag.data import PassageField, PassageRow
from lrp4rag.example import Example
from lrp4rag.guard.policy import Action, Reason
from lrp4rag.util.text import surrogate_in

MOST_PASSAGES = 64
LONGEST = 200_000
"""Characters of a text."""


def _encodable(text: str) -> str:
    if surrogate_in(text) is not None:
        raise ValueError("has half of a surrogate pair, which is no character")
    return text


Text = Annotated[str, Field(max_length=LONGEST), AfterValidator(_encodable)]
Name = Annotated[str, Field(max_length=200), AfterValidator(_encodable)]
Topic = Annotated[
    Name | None,
    Field(description="What it is about, for the record: one of the topics that the server's settings list."),
]


def _passage(row: PassageRow) -> PassageRow:
    """Return a passage that can be recorded; its texts have no limit of their own."""
    for text in vars(row).values():
        if isinstance(text, str):
            _encodable(text)
    return row


Passages = Annotated[
    list[Annotated[PassageField, AfterValidator(_passage)]],
    Field(min_length=1, max_length=MOST_PASSAGES),
]


class Body(BaseModel):
    """A request; a field that it does not know is refused."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class JudgeRequest(Body):
    """A response, and what it was made from."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "question": "How long is parental leave for partners?",
                    "passages": ["Partners are entitled to 2 weeks of paid parental leave."],
                    "response": "Partners are entitled to 4 weeks of paid parental leave.",
                }
            ]
        },
    )

    question: Text
    passages: Passages
    response: Text
    generator: Name | None = None
    """The model that wrote the response, where known."""
    topic: Topic = None

    def example(self) -> Example:
        """Return the example to judge. Raises `InputError` for what cannot be judged."""
        sources = (row.source for row in self.passages)
        return Example.of_sources(self.question, sources, self.response, generator=self.generator)


class BatchRequest(Body):
    """Responses that are judged one after another."""

    requests: Annotated[list[JudgeRequest], Field(min_length=1, max_length=100)]


class Decision(BaseModel):
    """What was done, and why; `id` finds its record."""

    id: str
    action: Action
    reason: Reason
    policy: str = Field(description="Hash of the policy.")
    rule: str | None = Field(default=None, description="The rule of the policy that decided.")


class JudgeReply(BaseModel):
    """The decision with what it was made of: the verdict as `lrp4rag analyse --json` prints it, the shares of
    sentences and facts that are grounded, and what checks found. `shown` is what the reader of the response
    is to get."""

    decision: Decision
    shown: str
    faithfulness: float | None
    fact_score: float | None
    findings: list[dict[str, Any]]
    closest: list[int] = Field(description="The passages that are closest, from 1.")
    unavailable: dict[str, str] = Field(description="Checks that did not finish, and why.")
    verdict: dict[str, Any]


class RetrievalRequest(Body):
    """A question, and the passages that were retrieved for it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "question": "How long is parental leave?",
                    "passages": [
                        {"text": "Leave is 12 weeks.", "title": "Leave Policy", "version": "2.8"},
                        {"text": "Leave is 16 weeks.", "title": "Leave Policy", "version": "3.1"},
                    ],
                }
            ]
        },
    )

    question: Text
    passages: Passages
    topic: Topic = None


class RetrievalReply(BaseModel):
    """Passages count from 1."""

    decision: Decision
    null: bool = Field(description="Whether nothing is fit to answer from.")
    kept: list[int] = Field(description="The passages to answer from, in the order to use them.")
    prompt_note: str = Field(description="For the prompt: what the kept passages say against each other.")
    findings: list[dict[str, Any]]


class Extension(Body):
    """What a chat request brings beside OpenAI's fields, under "lrp4rag"."""

    passages: Passages | None = None
    """Default: documents, the template's place in a message, results of tools."""
    question: Text | None = Field(default=None, description="Default: the last message of the user.")
    topic: Topic = None
    language: Annotated[str, Field(pattern="^[a-z]{2,3}$")] = "en"
