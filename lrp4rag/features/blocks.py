"""Named blocks of token features, and what must be computed for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lrp4rag.features.parts import READING, RELEVANCE, SIGNALS, STATES
from lrp4rag.features.plain import PlainTable
from lrp4rag.features.states import StateBlock
from lrp4rag.features.table import TokenTable
from lrp4rag.features.text import TEXT_FEATURES
from lrp4rag.features.tokens import PROFILES, TOKEN_FEATURES
from lrp4rag.lrp.signals import Wanted
from lrp4rag.util.errors import InputError

Block = TokenTable | PlainTable | StateBlock

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
    "plain": PlainTable(),
    "around": StateBlock("around"),
    "likelihoods": PlainTable(groups=("likelihoods",), beside=("likelihoods",)),
    "alignment": PlainTable(groups=("alignment",), beside=("alignment",)),
    "claims": PlainTable(groups=("claims",), beside=()),
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
    "state": StateBlock("whole"),
    "passages": StateBlock("passages", window=9),
}
"""Of a plain pass: `plain` are all features of it, `around` its hidden states, and `likelihoods`, `alignment`
and `claims` groups of features, for comparisons.

Of passes in relevance mode: `signals` are all features of tokens and all profiles, `segments` those without
provenance, and `quick` those that one pass with one tangent gives; `state` and `passages` are hidden
states, and their part from the passages. `relevance`, `provenance`, `likelihood`, `logit`, `gain`,
`attention` and `text` are groups of features, for comparisons."""

PLAIN_BLOCKS = ("plain", "around")
"""What the bundled detector reads."""
FULL_BLOCKS = ("signals", "state", "passages")
FAST_BLOCKS = ("quick", "state")


def blocks_named(names: Iterable[str]) -> dict[str, Block]:
    """Raises `InputError` for an unknown name, or none."""
    chosen = {}
    for name in names:
        if name not in BLOCKS:
            raise InputError(f"unknown block '{name}'; choose from {', '.join(BLOCKS)}")
        chosen[name] = BLOCKS[name]
    if not chosen:
        raise InputError(f"name at least one block of features: {', '.join(BLOCKS)}")
    return chosen


def parts_of(blocks: Mapping[str, Block]) -> tuple[str, ...]:
    """The parts of a store that the blocks are computed from; raises `InputError` for blocks of a plain pass
    together with others."""
    plain = [name for name, block in blocks.items() if is_plain(block)]
    if plain and len(plain) < len(blocks):
        others = ", ".join(name for name in blocks if name not in plain)
        raise InputError(f"the blocks {', '.join(plain)} are of a plain pass, and {others} are not")
    if plain:
        return (READING,)
    states = any(isinstance(block, StateBlock) for block in blocks.values())
    return (RELEVANCE, SIGNALS, STATES) if states else (RELEVANCE, SIGNALS)


def is_plain(block: Block) -> bool:
    """Whether it is computed from a plain pass, without relevance."""
    return isinstance(block, PlainTable) or (isinstance(block, StateBlock) and block.part == "around")


def wanted_by(blocks: Mapping[str, Block]) -> Wanted:
    """The fewest signals that the blocks can be computed from."""
    tables = [block for block in blocks.values() if isinstance(block, TokenTable)]
    states = [block for block in blocks.values() if isinstance(block, StateBlock)]
    features = {name for table in tables for name in table.features}
    profiles = {name for table in tables for name in table.profiles}
    return Wanted(
        each_segment=bool(features & set(BY_SEGMENT)),
        provenance=bool(features & set(PROVENANCE))
        or any(PROFILES[name].group == "provenance" for name in profiles)
        or any(state.part == "passages" for state in states),
        without_passages="gain" in features,
        other_passages="gain over others" in features,
    )
