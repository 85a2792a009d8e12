"""Relevance between units: of each word, sentence or token of the response to each unit of the prompt."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from lrp4rag.lrp.families import can_pull
from lrp4rag.lrp.flow import Flow
from lrp4rag.lrp.granularity import Granularity, Unit, members, prompt_units, response_units
from lrp4rag.lrp.relevance import Array
from lrp4rag.reader.encoding import Encoded


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
    """Relevance between the response's and the prompt's units.

    It costs a pass for each unit of the side that has fewer: a tangent for each of the prompt's, or a
    cotangent for each of the response's, unless the model is quantised and cannot be pulled through.
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
