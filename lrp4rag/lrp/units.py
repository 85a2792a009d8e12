"""Units of text, as words, sentences and passages, and the relevance between those of response and prompt.

Every token is in exactly one unit, whose relevance is the sum over its tokens.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from lrp4rag.lrp.families import can_pull
from lrp4rag.lrp.flow import Flow
from lrp4rag.lrp.relevance import Array
from lrp4rag.reader.encoding import Encoded, Offsets
from lrp4rag.util.errors import InputError
from lrp4rag.util.sentences import sentences_in

Granularity = Literal["token", "word", "sentence", "passage"]


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of text: its characters [start, end), and the indices of its tokens."""

    label: str
    start: int
    end: int
    tokens: tuple[int, ...]


def prompt_units(encoded: Encoded, granularity: Granularity) -> list[Unit]:
    """Return the units of a prompt. "passage" gives one for each segment: passages, question and template."""
    if granularity == "passage":
        return _segments(encoded)
    return _units(encoded.text, encoded.prompt_offsets, granularity)


def response_units(encoded: Encoded, granularity: Granularity) -> list[Unit]:
    """Return the units of a response; it has no passages."""
    if granularity == "passage":
        raise InputError("a response has no passages; choose token, word or sentence")
    return _units(encoded.response, encoded.response_offsets, granularity)


def members(units: Sequence[Unit], tokens: int) -> NDArray[np.float64]:
    """Return (units, tokens): 1 where a unit has a token, and 0 elsewhere."""
    matrix = np.zeros((len(units), tokens))
    for k, unit in enumerate(units):
        matrix[k, list(unit.tokens)] = 1
    return matrix


def grouped(values: Array, units: Sequence[Unit], axis: int = -1) -> Array:
    """Return relevance of units, in logits: sums of `values` over each unit's tokens along `axis`."""
    moved = np.moveaxis(np.asarray(values), axis, -1)
    count = sum(len(unit.tokens) for unit in units)
    if count != moved.shape[-1]:
        raise InputError(f"the units have {count} tokens and the values {moved.shape[-1]}")
    summed = moved.astype(np.float64) @ members(units, moved.shape[-1]).T
    result: Array = np.moveaxis(summed.astype(np.float32), -1, axis)
    return result


@dataclass(frozen=True, slots=True, eq=False)
class UnitRelevance:
    """Relevance (rows, columns) in logits, summed over the tokens of both units.

    `rows` are units of the response, `columns` of the prompt; `own` (rows) is what each row rests on the
    response's tokens before each of its own, `logits` (rows) the sum of its explained logits.
    """

    rows: tuple[Unit, ...]
    columns: tuple[Unit, ...]
    values: Array
    own: Array
    logits: Array
    composite: str
    target: str
    layer: int


def between(
    flow: Flow,
    encoded: Encoded,
    *,
    response: Granularity = "sentence",
    prompt: Granularity = "passage",
    layer: int = 0,
) -> UnitRelevance:
    """Return relevance between the response's and the prompt's units.

    It costs a tangent for each of the prompt's units, or a cotangent for each of the response's where these
    are fewer and the model, not being quantised, can be pulled through.
    """
    rows, columns = response_units(encoded, response), prompt_units(encoded, prompt)
    n, t = len(encoded.prompt_ids), len(encoded.response_ids)
    of_rows = torch.from_numpy(members(rows, t))
    # One more column: the response's own earlier tokens.
    of_columns = torch.zeros(len(columns) + 1, n + t - 1, dtype=torch.float64)
    of_columns[:-1, :n] = torch.from_numpy(members(columns, n))
    of_columns[-1, n:] = 1
    if len(rows) < len(columns) and can_pull(flow.model):
        values = flow.pull(encoded, of_rows, all_columns=True, layer=layer).cpu().double() @ of_columns.T
    else:
        values = of_rows @ flow.push(encoded, of_columns, layer=layer).cpu().double().T
    return UnitRelevance(
        rows=tuple(rows),
        columns=tuple(columns),
        values=values[:, :-1].float().numpy(),
        own=values[:, -1].float().numpy(),
        logits=(of_rows @ flow.explained_logits.cpu().double()).float().numpy(),
        composite=flow.composite.name,
        target=flow.target,
        layer=layer,
    )


def _segments(encoded: Encoded) -> list[Unit]:
    units = []
    for k, name in enumerate(encoded.segment_names):
        tokens = tuple(i for i, segment in enumerate(encoded.segments) if segment == k)
        spans = [encoded.prompt_offsets[i] for i in tokens]
        start, end = min((s for s, _ in spans), default=0), max((e for _, e in spans), default=0)
        units.append(Unit(name, start, end, tokens))
    return units


def _units(text: str, offsets: Offsets, granularity: Granularity) -> list[Unit]:
    if granularity == "token":
        return [Unit(text[start:end], start, end, (i,)) for i, (start, end) in enumerate(offsets)]
    if granularity == "word":
        spans = [match.span() for match in re.finditer(r"\S+", text)]
    elif granularity == "sentence":
        spans = list(sentences_in(text))
    else:
        raise InputError(
            f"unknown granularity '{granularity}'; choose from {', '.join(get_args(Granularity))}"
        )
    # A text of white space, or of control tokens alone, is one unit.
    spans = spans or [(0, len(text))]
    owner = _owners(offsets, spans)
    return [
        Unit(text[start:end], start, end, tuple(np.flatnonzero(owner == k).tolist()))
        for k, (start, end) in enumerate(spans)
    ]


def _owners(offsets: Offsets, spans: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """Return for each token the span that it shares most characters with; without any, the one before it."""
    owners, k = np.zeros(len(offsets), dtype=np.int64), 0
    for i, (start, end) in enumerate(offsets):
        while k + 1 < len(spans) and spans[k][1] <= start:
            k += 1
        best, shared, candidate = k, 0, k
        while candidate < len(spans) and spans[candidate][0] < end:
            overlap = min(end, spans[candidate][1]) - max(start, spans[candidate][0])
            if overlap > shared:
                best, shared = candidate, overlap
            candidate += 1
        if not shared and k > 0 and spans[k][0] >= end:
            best = k - 1
        owners[i] = best
    return owners
