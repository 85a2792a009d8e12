"""Named blocks of token features, and what must be computed for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from experiments.tokens.extraction import SIGNALS, STATES
from experiments.tokens.features import TOKEN_FEATURES
from experiments.tokens.states import PartOfState
from experiments.tokens.table import TokenTable
from experiments.tokens.text import TEXT_FEATURES
from lrp4rag.features import blocks as plain_blocks
from lrp4rag.features.blocks import Block
from lrp4rag.features.parts import READING, RELEVANCE
from lrp4rag.util.errors import InputError

ALONE = tuple(name for name in TOKEN_FEATURES if name != "gain over others")
"""What one example gives: the gain over others takes another prompt."""
BY_SEGMENT = ("question", "template", "leading passage", "lead", "spread", "agreement", "negative passages")
PROVENANCE = tuple(name for name, one in TOKEN_FEATURES.items() if one.group == "provenance")
RELEVANCE_ALONE = tuple(
    name for name, one in TOKEN_FEATURES.items() if one.group in ("relevance", "contrast")
)
LIKELIHOOD = ("log-probability", "entropy", "log rank")
QUICK = tuple(name for name in ALONE if name not in (*BY_SEGMENT, *PROVENANCE, "gain"))

BLOCKS: dict[str, Block] = {
    **plain_blocks.BLOCKS,
    "signals": TokenTable(features=ALONE),
    "quick": TokenTable(features=QUICK, profiles=("lookback",)),
    "segments": TokenTable(
        features=tuple(name for name in ALONE if name not in PROVENANCE), profiles=("lookback",)
    ),
    "relevance": TokenTable(features=RELEVANCE_ALONE, profiles=()),
    "provenance": TokenTable(features=PROVENANCE, profiles=("shares", "norms")),
    "likelihood": TokenTable(features=LIKELIHOOD, profiles=()),
    "logit": TokenTable(features=("logit",), profiles=()),
    "gain": TokenTable(features=("gain",), profiles=()),
    "attention": TokenTable(features=("mean lookback",), profiles=("lookback",)),
    "text": TokenTable(features=(*TEXT_FEATURES, "position"), profiles=()),
    "state": PartOfState("whole"),
    "passages": PartOfState("passages", window=9),
}
"""Those of plain passes, and of passes in relevance mode: `signals` are all features of tokens and all
profiles, `segments` those without provenance, and `quick` those that one pass with one tangent gives; `state`
and `passages` are hidden states, and their part from the passages. `relevance`, `provenance`, `likelihood`,
`logit`, `gain`, `attention` and `text` are groups of features, for comparisons."""

FULL_BLOCKS = ("signals", "state", "passages")
FAST_BLOCKS = ("quick", "state")


def blocks_named(names: Iterable[str]) -> dict[str, Block]:
    """Return blocks of either kind by name; raises as that of the product."""
    return plain_blocks.blocks_named(names, BLOCKS)


def parts_of(blocks: Mapping[str, Block]) -> tuple[str, ...]:
    """The parts of a store that the blocks are computed from; raises `InputError` for blocks of a plain pass
    together with others."""
    plain = [name for name, block in blocks.items() if is_plain(block)]
    if plain and len(plain) < len(blocks):
        others = ", ".join(name for name in blocks if name not in plain)
        raise InputError(f"the blocks {', '.join(plain)} are of a plain pass, and {others} are not")
    if plain:
        return (READING,)
    states = any(isinstance(block, PartOfState) for block in blocks.values())
    return (RELEVANCE, SIGNALS, STATES) if states else (RELEVANCE, SIGNALS)


def is_plain(block: Block) -> bool:
    """Whether it is computed from a plain pass, without relevance."""
    return not isinstance(block, TokenTable | PartOfState)
