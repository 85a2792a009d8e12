"""Named blocks of features of tokens, computed from one plain pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from lrp4rag.features.plain import ENTAILMENT, PlainTable, StateBlock
from lrp4rag.features.record import Record
from lrp4rag.util.errors import InputError


class Block(Protocol):
    """A dataclass that makes features of a record's t tokens, (t, columns)."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __call__(self, record: Record) -> NDArray[np.float32]: ...


BLOCKS: dict[str, Block] = {
    "plain": PlainTable(),
    "around": StateBlock("around"),
    "likelihoods": PlainTable(groups=("likelihoods",), beside=("likelihoods",)),
    "alignment": PlainTable(groups=("alignment",), beside=("alignment",)),
    "claims": PlainTable(groups=("claims",), beside=()),
    ENTAILMENT: PlainTable(groups=(ENTAILMENT,), beside=(ENTAILMENT,)),
}
"""`plain` are the features of a plain pass, `around` its hidden states, and `entailment` what a comparer
makes of its sentences; `likelihoods`, `alignment` and `claims` are groups of features, for comparisons."""

PLAIN_BLOCKS = ("plain", "around", ENTAILMENT)
"""The blocks of the bundled detector."""


def reads_comparer(blocks: Iterable[Block]) -> bool:
    """Say whether some blocks have features of a comparer."""
    return any(isinstance(block, PlainTable) and ENTAILMENT in block.groups for block in blocks)


def blocks_named(names: Iterable[str], blocks: Mapping[str, Block] = BLOCKS) -> dict[str, Block]:
    """Return those of some `blocks` with these names; raises `InputError` for an unknown name, or none."""
    chosen = {}
    for name in names:
        if name not in blocks:
            raise InputError(f"unknown block '{name}'; choose from {', '.join(blocks)}")
        chosen[name] = blocks[name]
    if not chosen:
        raise InputError(f"name at least one block of features: {', '.join(blocks)}")
    return chosen
