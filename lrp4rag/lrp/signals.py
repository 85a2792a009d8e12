"""`Signals`: what one pass over a response tells beside R_response, for detectors and baselines to read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from lrp4rag.errors import InputError
from lrp4rag.generator.encoding import Encoded
from lrp4rag.lrp.attribute import segment_weights
from lrp4rag.lrp.composites import CP_LRP, Composite
from lrp4rag.lrp.families import family_of, one_stack
from lrp4rag.lrp.prefix import Prefix
from lrp4rag.lrp.propagate import Flow
from lrp4rag.lrp.readout import Explained, target_named
from lrp4rag.lrp.replay import FinalState
from lrp4rag.lrp.rules import accumulate
from lrp4rag.lrp.trace import Trace, Tracer, trace_of

Array = NDArray[Any]

ORIGINS = ("passages", "question", "template", "response")
"""The segments of provenance, in order; a model with biases has one more, "bias"."""


@dataclass(frozen=True, slots=True, eq=False)
class Signals:
    """t response tokens, each at the position that predicts it; S segments as `Encoded` names them.

    Relevance is in logits. L layers, d features; provenance has the segments `ORIGINS` (P).

    * `logits` (t): the explained logits. `by_segment` (S, t): their relevance under the store's composite.
    * `largest_by_segment`, `mean_by_segment` (S, t): the same for the reader's largest and mean logit.
    * `cp_by_segment` (4, t): cp_lrp relevance of `ORIGINS`; on a bias-free model it sums to the logit.
    * `shares`, `norms` (L, P, t), `parts` (chosen layers, P, d), `part_layers`: provenance (see `Trace`).
    * `hidden_mean`, `hidden_last` (L + 1, d): states, the embeddings first. `lookback` (L, heads, t).
    * `logprob`, `entropy` (t), in nats, `rank` (t): of the response token, 0 for the likeliest.
    * `logprob_without_passages`, `logprob_other_passages` (t): with the passages left out, or replaced by
      those of another prompt (NaN-free: equal to `logprob_without_passages` where there is no other).
    """

    logits: Array
    by_segment: Array
    largest_by_segment: Array
    mean_by_segment: Array
    cp_by_segment: Array
    shares: Array
    norms: Array
    parts: Array
    part_layers: Array
    hidden_mean: Array
    hidden_last: Array
    lookback: Array
    logprob: Array
    entropy: Array
    rank: Array
    logprob_without_passages: Array
    logprob_other_passages: Array

    def arrays(self) -> dict[str, Array]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True, eq=False)
class States:
    """Hidden states of t response tokens, where each is predicted, after the layers `layers` (l).

    * `whole` (l, t, d), and `passages` (l, t, d): the part that came from the passages (provenance).
    """

    layers: Array
    whole: Array
    passages: Array

    def arrays(self) -> dict[str, Array]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True)
class Likelihood:
    """Log-probability and entropy, in nats, and rank of each response token, (t,) each."""

    logprob: Tensor
    entropy: Tensor
    rank: Tensor

    @classmethod
    def of(cls, logits: Tensor, ids: Sequence[int]) -> Likelihood:
        parts = []
        for some, chosen in _few_rows(logits, ids):
            logprobs = accumulate(some).log_softmax(-1)
            logprob = logprobs.gather(1, chosen[:, None])
            entropy = -(logprobs.exp() * logprobs).sum(-1)
            parts.append((logprob[:, 0], entropy, (logprobs > logprob).sum(-1)))
        return cls(*(torch.cat(part) for part in zip(*parts, strict=True)))


def logprob_of(logits: Tensor, ids: Sequence[int]) -> Tensor:
    """Log-probability, in nats, of each token (t,), from logits (t, vocabulary)."""
    rows = _few_rows(logits, ids)
    return -torch.cat([F.cross_entropy(accumulate(some), chosen, reduction="none") for some, chosen in rows])


def _few_rows(logits: Tensor, ids: Sequence[int], size: int = 16) -> Iterator[tuple[Tensor, Tensor]]:
    """As many as stay in a processor's cache in float32: twice as fast as all at once."""
    chosen = torch.tensor(ids, device=logits.device)
    return zip(logits.split(size), chosen.split(size), strict=True)


class PromptSignals:
    """One prompt, read once; `of` gives the signals of each response to it. Use it in the flow's mode.

    `other` is a prompt whose passages are put in place of its own.
    """

    def __init__(self, flow: Flow, encoded: Encoded, other: Encoded | None) -> None:
        self._flow, self._segments = flow, len(encoded.segment_names)
        self._prompt = encoded.prompt_ids
        self._part_layers = tuple(range(3, len(flow.replayer.blocks), 4))
        self._bias = _has_biases(flow.model)
        require_signals(flow.model, flow.composite)
        own, origins = segment_weights(encoded), _origin_weights(encoded)
        self._tracer = self._new_tracer(last_only=True)
        self._prefix = flow.prefix(
            encoded.prompt_ids,
            torch.cat([own, origins]),
            composites=[flow.composite] * len(own) + [CP_LRP] * len(origins),
            observer=self._tracer,
        )
        self._without = flow.prefix(_without_passages(encoded))
        self._other = self._without if other is None else flow.prefix(_with_passages_of(encoded, other))

    def of(self, encoded: Encoded) -> tuple[Signals, States]:
        ids = encoded.response_ids
        tracer = self._new_tracer(last_only=False) if len(ids) > 1 else None
        # The response's own tokens are the last tangent's.
        weights = torch.zeros(self._prefix.tangents, len(ids) - 1)
        weights[-1] = 1
        state = self._prefix.states(ids, weights, observer=tracer)
        trace = trace_of(self._tracer, tracer)
        readout, primal = self._flow.readout, state.primal[0]
        logits, chosen = readout.head(primal), torch.tensor(ids, device=primal.device)
        explained = {
            name: readout.explain(primal, chosen, target_named(name), logits)
            for name in ("response", "largest", "mean")
        }
        by_target = {name: _read(one, state) for name, one in explained.items()}
        likelihood = Likelihood.of(readout.capped(logits), ids)
        embedded = accumulate(self._flow.replayer.embed((self._prompt[-1], *ids[:-1])))
        signals = Signals(
            logits=_array(explained["response"].logits),
            by_segment=_array(by_target["response"][: self._segments]),
            largest_by_segment=_array(by_target["largest"][: self._segments]),
            mean_by_segment=_array(by_target["mean"][: self._segments]),
            cp_by_segment=_array(by_target["response"][self._segments :]),
            **_trace_arrays(trace, embedded),
            part_layers=np.array(self._part_layers),
            logprob=_array(likelihood.logprob),
            entropy=_array(likelihood.entropy),
            rank=likelihood.rank.cpu().numpy().astype(np.int32),
            logprob_without_passages=_array(self._logprob(self._without, ids)),
            logprob_other_passages=_array(self._logprob(self._other, ids)),
        )
        passages = trace.state_parts[:, ORIGINS.index("passages")]
        states = States(
            layers=np.array(self._part_layers),
            whole=_array(trace.states.transpose(1, 2)),
            passages=_array(passages.transpose(1, 2)),
        )
        return signals, states

    def _new_tracer(self, *, last_only: bool) -> Tracer:
        return Tracer(
            prompt=len(self._prompt),
            segments=slice(self._segments, self._segments + len(ORIGINS)),
            part_layers=self._part_layers,
            bias=self._bias,
            last_only=last_only,
        )

    def _logprob(self, prefix: Prefix, ids: Sequence[int]) -> Tensor:
        readout = self._flow.readout
        return logprob_of(readout.capped(readout.head(prefix.states(ids).primal[0])), ids)


def require_signals(model: Any, composite: Composite) -> None:
    """Raise `InputError` where a model or composite does not let cp_lrp be pushed beside it."""
    if not one_stack(model, composite, CP_LRP):
        raise InputError(
            f"signals need {composite.name} and cp_lrp in one stack, which {type(model).__name__} and these "
            "rules do not allow; leave them out (--parts relevance,prompt)"
        )


def _read(explained: Explained, state: FinalState) -> Tensor:
    return explained.read(state.tangents[:, 0]) * state.scale


def _trace_arrays(trace: Trace, embedded: Tensor) -> dict[str, Array]:
    states = {
        "hidden_mean": torch.cat([embedded.mean(0)[None], trace.hidden_mean]),
        "hidden_last": torch.cat([embedded[-1:], trace.hidden_last]),
    }
    others = {name: getattr(trace, name) for name in ("shares", "norms", "parts", "lookback")}
    return {name: _array(value) for name, value in {**states, **others}.items()}


def _origin_weights(encoded: Encoded) -> Tensor:
    """One tangent for each of `ORIGINS` (4, n): passages, question, template; the response comes later."""
    segments = torch.tensor(encoded.segments)
    return torch.stack([segments >= 2, segments == 1, segments == 0, segments < 0]).double()


def _without_passages(encoded: Encoded) -> tuple[int, ...]:
    pairs = zip(encoded.prompt_ids, encoded.segments, strict=True)
    return tuple(token for token, segment in pairs if segment < 2)


def _with_passages_of(encoded: Encoded, other: Encoded) -> tuple[int, ...]:
    """Passage k of the other prompt in place of passage k; what one has more of is left out or added last."""
    ids: list[int] = []
    last = max(encoded.segments)
    placed: set[int] = set()
    for token, segment in zip(encoded.prompt_ids, encoded.segments, strict=True):
        if segment < 2:
            ids.append(token)
        elif segment not in placed:
            placed.add(segment)
            # The last passage's place takes the other's remaining ones.
            ids += [
                id
                for id, theirs in zip(other.prompt_ids, other.segments, strict=True)
                if theirs == segment or (segment == last and theirs > last)
            ]
    return tuple(ids)


def _has_biases(model: Any) -> bool:
    return any(
        getattr(linear, "bias", None) is not None
        for block in family_of(model).blocks(model)
        for linear in block.linears
    )


def _array(values: Tensor) -> Array:
    array: Array = values.detach().to("cpu", torch.float32).numpy()
    return array
