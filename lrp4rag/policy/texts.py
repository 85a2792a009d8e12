"""`Texts`: what people read, in any language; a policy may have its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

LONGEST = 1000
PLACES = ("sources", "contact", "sides", "outdated", "condition")
_PLACE = re.compile(r"\{([^{}]*)\}")


def _known(text: str) -> str:
    for place in _PLACE.findall(text):
        if place not in PLACES:
            raise ValueError(
                f"{{{place}}} is no place; there are: {', '.join(f'{{{one}}}' for one in PLACES)}"
            )
    return text


Template = Annotated[str, Field(max_length=LONGEST), AfterValidator(_known)]


class Texts(BaseModel):
    """{sources} are the closest sources, {contact} is whom to ask, {sides} what passages say against each
    other, {outdated} which of them do not hold now, {condition} what is left out. Braces in what is filled in
    are text."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mark: Template = Field(default=" [not verified]", description="Follows a suspect sentence.")
    notice: Template = Field(
        default="[withheld: the retrieved passages do not support this sentence]",
        description="In the place of a sentence that is withheld.",
    )
    unavailable_notice: Template = Field(
        default="[withheld: this sentence could not be checked]",
        description="In the place of a sentence that has no verdict.",
    )
    uncertain: Template = Field(
        default="Parts of this answer could not be verified in the available documents.",
        description="Under an answer with suspect sentences.",
    )
    conflict: Template = Field(
        default="The available documents contradict each other: {sides}",
        description="Under an answer on which passages contradict each other.",
    )
    outdated: Template = Field(
        default="This answer rests on a document that does not hold now: {outdated}",
        description="Under an answer from an expired, superseded or future document.",
    )
    omitted: Template = Field(
        default="This holds under a condition: {condition}",
        description="Under an answer that leaves out a condition.",
    )
    insufficient: Template = Field(
        default="This question could not be fully answered from the available documents. {sources} {contact}",
        description="In the place of an answer with too little evidence.",
    )
    gap: Template = Field(
        default="The available documents do not answer this question. {sources} {contact}",
        description="In the place of an answer that hardly anything supports.",
    )
    fabricated: Template = Field(
        default="The answer is withheld: it cites a document that was not retrieved. {sources} {contact}",
        description="In the place of an answer with such a citation.",
    )
    escalated: Template = Field(
        default="The answer is withheld until a person has reviewed it. {sources} {contact}",
        description="In the place of an answer that a reviewer decides on.",
    )
    unlike: Template = Field(
        default="The answer is withheld: how well it is supported could not be told. {sources} {contact}",
        description="In the place of an answer that is unlike the training data.",
    )
    unavailable: Template = Field(
        default="The answer is withheld: it could not be checked. {sources} {contact}",
        description="In the place of an answer that could not be judged.",
    )
    closest: Template = Field(default="Closest sources: {sources}.", description="What {sources} becomes.")
    contact: Template = Field(default="", description="Whom to ask: what {contact} becomes.")


def filled(template: str, values: Mapping[str, str]) -> str:
    """The template with its places filled, white space at its ends and doubled spaces left out."""
    text = _PLACE.sub(lambda match: values.get(match[1], ""), template)
    return re.sub(r" {2,}", " ", text).strip()
