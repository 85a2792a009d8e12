"""`Texts`: what people read, in any language; a policy may have its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from lrp4rag.util.text import one_line

if TYPE_CHECKING:
    from lrp4rag.classifiers.verdict import Contradiction

LONGEST = 1000
LONGEST_VALUE = 80
"""Characters that are quoted of a value."""
PLACES = ("sources", "contact", "sides", "outdated", "condition", "contradictions")
OF_ONE = ("said", "passage", "instead")
"""Places of `instead` and of `correction`."""
_PLACE = re.compile(r"\{([^{}]*)\}")


def _known(text: str) -> str:
    for place in _PLACE.findall(text):
        if place not in (*PLACES, *OF_ONE):
            known = ", ".join(f"{{{one}}}" for one in (*PLACES, *OF_ONE))
            raise ValueError(f"{{{place}}} is no place; there are: {known}")
    return text


Template = Annotated[str, Field(max_length=LONGEST), AfterValidator(_known)]


class Texts(BaseModel):
    """{sources} are the closest sources, {contact} is whom to ask, {sides} what passages say against each
    other, {outdated} which of them do not hold now, {condition} what is left out, {contradictions} each
    value that a passage has otherwise (`instead`: {said}, {passage} and {instead}). Braces in what is
    filled in are text."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

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


def corrected(template: str, one: Contradiction) -> str:
    """Return a template of one contradiction, with the white space that it begins with."""
    said, instead = one_line(one.text, LONGEST_VALUE), one_line(one.instead, LONGEST_VALUE)
    gap = template[: len(template) - len(template.lstrip())]
    return gap + filled(template, {"said": said, "passage": str(one.passage + 1), "instead": instead})


def filled(template: str, values: Mapping[str, str]) -> str:
    """Return the template with its places filled, white space at its ends and doubled spaces left out."""
    text = _PLACE.sub(lambda match: values.get(match[1], ""), template)
    return re.sub(r" {2,}", " ", text).strip()
