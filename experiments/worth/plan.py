"""What relevance is added to, and what else is added in its place."""

from __future__ import annotations

from dataclasses import dataclass

TEXT, PLAIN, GAIN, STATE, ALL_OF_THEM = (
    "text and likelihood",
    "text, likelihood, logit and attention",
    "these and the passages' gain",
    "hidden state",
    "all of these",
)
RELEVANCE, PROVENANCE = "relevance", "relevance and provenance"
MEANS, ANOTHERS = "relevance, means only", "another response's relevance"


@dataclass(frozen=True, slots=True)
class Base:
    """What is known without relevance: `blocks` of token features (`features.blocks`), each judged by
    networks of its own whose log odds are combined, and `groups` of features of whole responses
    (`whole.GROUPS`), which one logistic regression reads."""

    blocks: tuple[str, ...]
    groups: tuple[str, ...]


_PLAIN = ("text", "likelihood", "logit", "attention")
_KNOWN = (*_PLAIN, "gain")
BASES = {
    TEXT: Base(("text", "likelihood"), ("text", "likelihood")),
    PLAIN: Base(_PLAIN, _PLAIN),
    GAIN: Base(_KNOWN, _KNOWN),
    STATE: Base(("state",), ("state",)),
    ALL_OF_THEM: Base((*_KNOWN, "state"), (*_KNOWN, "state")),
}
BLOCKS_ADDED = {RELEVANCE: ("relevance",), PROVENANCE: ("relevance", "provenance")}
"""To the blocks of each base, where tokens are judged."""
GROUPS_ADDED = {RELEVANCE: ("relevance",), MEANS: ("relevance means",), ANOTHERS: ("another's",)}
"""To the groups of each base, where whole responses are."""
