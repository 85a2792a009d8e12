"""`Signals`: what one pass over a response tells beside R_response, for detectors and baselines to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from experiments.tokens.likelihood import Likelihood, logprob_of
from experiments.tokens.trace import Trace, Tracer, trace_of
from lrp4rag.lrp.attribution import segment_weights
from lrp4rag.lrp.composites import CP_LRP, Composite
from lrp4rag.lrp.families import one_stack
from lrp4rag.lrp.flow import Flow
from lrp4rag.lrp.prefix import Prefix
from lrp4rag.lrp.readout import target_named
from lrp4rag.lrp.relevance import as_array
from lrp4rag.lrp.replay import FinalState
from lrp4rag.lrp.rules import accumulate
from lrp4rag.reader.encoding import Encoded
from lrp4rag.util.errors import InputError

Array = NDArray[Any]

ORIGINS = ("passages", "question", "template", "response")
"""The segments of provenance, in order; a model with biases has one more, "bias"."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which signals are computed. Likelihood, lookback, mean states and contrasts cost nothing, so always.

    * `each_segment`: relevance of each segment, a tangent each; else of all passages together, one tangent.
    * `provenance`: a tangent under cp_lrp for each of `ORIGINS`; without it states are whole only.
    * `without_passages`, `other_passages`: log-probability under another prompt, each a pass of its own.
    """

    each_segment: bool = True
    provenance: bool = True
    without_passages: bool = True
    other_passages: bool = True


EVERYTHING = Wanted()
FULL = Wanted(other_passages=False)
"""What a verdict on one response, with evidence for each passage, rests on."""
FAST = Wanted(each_segment=False, provenance=False, without_passages=False, other_passages=False)
"""One tangent and no second pass."""


class _Arrays:
    __slots__ = ()

    def arrays(self) -> dict[str, Array]:
        """By name, those that were wanted."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {name: array for name, array in named.items() if array is not None}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Signals(_Arrays):
    """t response tokens, each at the position that predicts it; S segments as `Encoded` names them.

    Relevance is in logits. L layers, d features; provenance has the segments `ORIGINS` (P). What was not
    wanted is None.

    * `logits` (t): the explained logits. `by_segment` (S, t): their relevance under the store's composite.
    * `largest_by_segment`, `mean_by_segment` (S, t): the same for the reader's largest and mean logit.
    * `passages`, `largest_passages`, `mean_passages` (t): the same of all passages together, where segments
      were not told apart.
    * `cp_by_segment` (4, t): cp_lrp relevance of `ORIGINS`; on a bias-free model it sums to the logit.
    * `shares`, `norms` (L, P, t), `parts` (chosen layers, P, d), `part_layers`: provenance (see `Trace`).
    * `hidden_mean`, `hidden_last` (L + 1, d): states, the embeddings first. `lookback` (L, heads, t).
    * `logprob`, `entropy` (t), in nats, `rank` (t): of the response token, 0 for the likeliest.
    * `logprob_without_passages`, `logprob_other_passages` (t): with the passages left out, or replaced by
      those of another prompt (NaN-free: equal to `logprob_without_passages` where there is no other).
    """

    logits: Array
    by_segment: Array | None = None
    largest_by_segment: Array | None = None
    mean_by_segment: Array | None = None
    passages: Array | None = None
    largest_passages: Array | None = None
    mean_passages: Array | None = None
    cp_by_segment: Array | None = None
    shares: Array | None = None
    norms: Array | None = None
    parts: Array | None = None
    part_layers: Array | None = None
    hidden_mean: Array
    hidden_last: Array
    lookback: Array
    logprob: Array
    entropy: Array
    rank: Array
    logprob_without_passages: Array | None = None
    logprob_other_passages: Array | None = None


@dataclass(frozen=True, slots=True, eq=False)
class States(_Arrays):
    """Hidden states of t response tokens, where each is predicted, after the layers `layers` (l).

    * `whole` (l, t, d), and `passages` (l, t, d): the part that came from the passages, None without
      provenance.
    """

    layers: Array
    whole: Array
    passages: Array | None


_Started = tuple[Prefix, tuple[int, ...]]
"""A prompt: what was read of it, and the rest."""


class PromptSignals:
    """One prompt, read once; `of` gives the signals of each response to it. Use it in the flow's mode.

    The passages of `other` are put in place of its own. With `staged`, tangents join near where their
    segments begin and the prompts share what comes before the passages: faster, with other rounding.
    """

    def __init__(
        self,
        flow: Flow,
        encoded: Encoded,
        other: Encoded | None = None,
        wanted: Wanted = EVERYTHING,
        *,
        staged: bool = False,
    ) -> None:
        self._flow, self._wanted, self._prompt = flow, wanted, encoded.prompt_ids
        if wanted.provenance:
            require_signals(flow.model, flow.composite)
        own, origins = _tangents(encoded, wanted)
        weights = torch.cat([own, origins])
        composites = [flow.composite] * len(own) + [CP_LRP] * len(origins)
        begins = weights.eq(0).cummin(1).values.sum(1).tolist()  # the zeros before each tangent
        order = sorted(range(len(weights)), key=begins.__getitem__) if staged else list(range(len(weights)))
        self._own, self._rows = len(own), [order.index(k) for k in range(len(order))]
        self._part_layers = tuple(range(3, len(flow.replayer.blocks), 4))
        linears = [linear for block in flow.replayer.blocks for linear in block.linears]
        has_bias = any(getattr(linear, "bias", None) is not None for linear in linears)
        self._bias = wanted.provenance and has_bias
        self._tracer = self._new_tracer(last_only=True)
        without = _without_passages(encoded)
        # Before the first tangent begins, the prompt without passages is the same.
        shared = max(0, min(*begins, len(self._prompt) - 1, len(without) - 1)) if staged else 0
        opening = flow.prefix(self._prompt[:shared]) if shared else None
        self._prefix = flow.prefix(
            self._prompt[shared:],
            weights[order, shared:],
            composites=[composites[k] for k in order],
            observer=self._tracer,
            staged=staged,
            after=opening,
        )
        self._without: _Started | None = None
        self._other: _Started | None = None
        if wanted.without_passages or (wanted.other_passages and other is None):
            # What is left of that prompt is read with the response: two short passes cost more than one.
            self._without = (flow.prefix(without), ()) if opening is None else (opening, without[shared:])
        if wanted.other_passages:
            replaced = None if other is None else _with_passages_of(encoded, other)
            self._other = self._without if replaced is None else (flow.prefix(replaced), ())

    def of(self, encoded: Encoded) -> tuple[Signals, States]:
        """The signals of one response to the prompt, and its states."""
        ids, wanted = encoded.response_ids, self._wanted
        tracer = self._new_tracer(last_only=False) if len(ids) > 1 else None
        weights = torch.zeros(self._prefix.tangents, len(ids) - 1)
        if wanted.provenance:  # the response's own tokens are the last tangent's
            weights[self._rows[-1]] = 1
        state = self._prefix.states(ids, weights, observer=tracer)
        trace = trace_of(self._tracer, tracer)
        readout, primal = self._flow.readout, state.primal[0]
        logits = readout.head(primal)
        likelihood = Likelihood.of(readout.capped(logits), ids)
        signals = Signals(
            **self._relevance(state, logits, ids),
            **self._of_layers(trace, ids),
            logprob=as_array(likelihood.logprob),
            entropy=as_array(likelihood.entropy),
            rank=likelihood.rank.cpu().numpy().astype(np.int32),
            logprob_without_passages=self._logprob(self._without, ids) if wanted.without_passages else None,
            logprob_other_passages=self._logprob(self._other, ids),
        )
        passages = trace.state_parts[:, ORIGINS.index("passages")] if wanted.provenance else None
        states = States(
            layers=np.array(self._part_layers, dtype=np.int64),
            whole=as_array(trace.states.transpose(1, 2)),
            passages=None if passages is None else as_array(passages.transpose(1, 2)),
        )
        return signals, states

    def _relevance(self, state: FinalState, logits: Tensor, ids: Sequence[int]) -> dict[str, Array]:
        primal = state.primal[0]
        chosen = torch.tensor(ids, device=primal.device)
        found: dict[str, Array] = {}
        for name, prefix in (("response", ""), ("largest", "largest_"), ("mean", "mean_")):
            one = self._flow.readout.explain(primal, chosen, target_named(name), logits)
            by_tangent = as_array(one.read(state.tangents[:, 0]) * state.scale)[self._rows]
            if self._wanted.each_segment:
                found[f"{prefix}by_segment"] = by_tangent[: self._own]
            else:
                found[f"{prefix}passages"] = by_tangent[0]
            if name == "response":
                found["logits"] = as_array(one.logits)
                if self._wanted.provenance:
                    found["cp_by_segment"] = by_tangent[self._own :]
        return found

    def _of_layers(self, trace: Trace, ids: Sequence[int]) -> dict[str, Array]:
        """State and attention of each layer, which need no tangents, and provenance."""
        embedded = accumulate(self._flow.replayer.embed((self._prompt[-1], *ids[:-1])))
        found: dict[str, Array] = {
            "hidden_mean": as_array(torch.cat([embedded.mean(0)[None], trace.hidden_mean])),
            "hidden_last": as_array(torch.cat([embedded[-1:], trace.hidden_last])),
            "lookback": as_array(trace.lookback),
        }
        if self._wanted.provenance:
            found |= {name: as_array(getattr(trace, name)) for name in ("shares", "norms", "parts")}
            found["part_layers"] = np.array(self._part_layers)
        return found

    def _new_tracer(self, *, last_only: bool) -> Tracer:
        return Tracer(
            prompt=len(self._prompt),
            segments=self._rows[self._own :],
            part_layers=self._part_layers,
            bias=self._bias,
            last_only=last_only,
        )

    def _logprob(self, started: _Started | None, ids: Sequence[int]) -> Array | None:
        if started is None:
            return None
        prefix, rest = started
        readout, primal = self._flow.readout, prefix.states((*rest, *ids)).primal[0, len(rest) :]
        return as_array(logprob_of(readout.capped(readout.head(primal)), ids))


def require_signals(model: Any, composite: Composite) -> None:
    """Raise `InputError` where a model or composite does not let cp_lrp be pushed beside it."""
    if not one_stack(model, composite, CP_LRP):
        raise InputError(
            f"signals need {composite.name} and cp_lrp in one stack, which {type(model).__name__} and these "
            "rules do not allow; leave them out (parts relevance,prompt)"
        )


def _without_passages(encoded: Encoded) -> tuple[int, ...]:
    pairs = zip(encoded.prompt_ids, encoded.segments, strict=True)
    return tuple(token for token, segment in pairs if segment < 2)


def _with_passages_of(encoded: Encoded, other: Encoded) -> tuple[int, ...]:
    """Passage k of the other prompt in place of passage k; what one has more of is left out or added last."""
    ids: list[int] = []
    last, placed = max(encoded.segments), set[int]()
    theirs = list(zip(other.prompt_ids, other.segments, strict=True))
    for token, segment in zip(encoded.prompt_ids, encoded.segments, strict=True):
        if segment < 2:
            ids.append(token)
        elif segment not in placed:
            placed.add(segment)  # the last passage's place takes the other's remaining ones
            ids += [id for id, own in theirs if own == segment or (segment == last and own > last)]
    return tuple(ids)


def _tangents(encoded: Encoded, wanted: Wanted) -> tuple[Tensor, Tensor]:
    """Those of the flow's composite (S or 1, n), and those of `ORIGINS` (4 or 0, n).

    The response's own tokens, the last of the origins, come later.
    """
    segments, own = torch.tensor(encoded.segments), segment_weights(encoded)
    if not wanted.each_segment:
        own = own[2:].sum(0, keepdim=True)
    origins = torch.stack([segments >= 2, segments == 1, segments == 0, segments < 0]).double()
    return own, origins if wanted.provenance else origins[:0]
