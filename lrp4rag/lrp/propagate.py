"""Push tangents from the prompt to the logits, pull cotangents from the logits to the prompt.

Both directions are the linear map J of a composite, and its transpose (Gradient x Input form of
LRP: Arras et al., arXiv 2502.15886). No autograd is involved, so no graph is held.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from lrp4rag.errors import InputError, LRP4RAGError
from lrp4rag.lrp.backward import pull_attention, pull_mlp
from lrp4rag.lrp.composites import Composite
from lrp4rag.lrp.families import one_stack, require_pull
from lrp4rag.lrp.memory import (
    Shape,
    Sizes,
    plan,
    pull_bytes,
    push_bytes,
    retrying,
    return_memory_early,
    tape_bytes,
    used_bytes,
)
from lrp4rag.lrp.prefix import Prefix
from lrp4rag.lrp.readout import Explained, Readout, Target, target_named
from lrp4rag.lrp.replay import FinalState, Kept, Replayer, pad_columns, power_of_two
from lrp4rag.lrp.rules import accumulate
from lrp4rag.lrp.stack import Observer, raise_not_finite
from lrp4rag.lrp.tokens import Tokens, check_weights, lengths_of

Result = TypeVar("Result")

# Tangents pushed at once, and cotangents pulled at once: more cost memory and gain nothing on a CPU.
PUSH_CHUNK = 8
PULL_CHUNK = 8

Visit = Callable[[int, str, Tensor], None]
"""Sees each step of a pull: the layer, the part ("mlp", "attention") and the cotangents before it."""


@dataclass(frozen=True, slots=True)
class _Tape:
    """One replay: what `pull` needs to go back from its logits."""

    tokens: Tokens
    embeddings: Tensor  # N, d
    kept: Kept
    explained: Explained


class Flow:
    """A model in relevance mode; made by `lrp4rag.lrp.mode.relevance_mode`.

    n is the number of prompt tokens, t of response tokens. Relevance is in logits. With `layer` = l,
    relevance is that of the residual stream at the input of decoder layer l, counted from 0, rather
    than of the embeddings.
    """

    def __init__(
        self,
        model: Any,
        replayer: Replayer,
        composite: Composite,
        target: Target,
        *,
        sizes: Sizes | None = None,
        max_memory: int | None = None,
    ) -> None:
        self.model, self.composite, self.explains = model, composite, target
        self.readout, self.replayer = Readout(model, composite), replayer
        self._given, self._max_memory, self._shape = sizes, max_memory, Shape.of(model)
        if max_memory is not None:
            return_memory_early()
        self._tape: _Tape | None = None
        self._explained_logits: Tensor | None = None

    @property
    def _sizes(self) -> Sizes:
        return self._given or Sizes(tangents=PUSH_CHUNK, cotangents=PULL_CHUNK)

    @property
    def target(self) -> str:
        """The name of what is explained."""
        return self.explains.name

    @property
    def explained_logits(self) -> Tensor:
        """The explained logit z_j of each response token (t,), of the last replay."""
        if self._explained_logits is None:
            raise LRP4RAGError("nothing was replayed yet")
        return self._explained_logits

    @torch.no_grad()
    def push(self, tokens: Tokens, weights: Tensor, *, keep: bool = False, layer: int = 0) -> Tensor:
        """`sum_i weights[:, i] R[j, i]` for every response token j: (T, n) or (T, N) -> (T, t).

        N = n + t - 1 columns also cover the response tokens that later ones can read. One pass of
        the model per chunk of tangents. `keep` remembers the replay, so that a `pull` on the
        same tokens need not repeat it (at the price of the activations' memory).
        """
        return self.read(tokens, weights, [self.explains], keep=keep, layer=layer)[0]

    @torch.no_grad()
    def read(
        self,
        tokens: Tokens,
        weights: Tensor,
        targets: Sequence[str | Target],
        *,
        keep: bool = False,
        layer: int = 0,
    ) -> Tensor:
        """`push` for several targets (targets, T, t) at the price of one: only the readout differs."""
        n, t = lengths_of(tokens)
        check_weights(weights, n, n + t - 1)
        chosen = [target_named(target) for target in targets]
        self._check_layer(layer)

        def attempt(sizes: Sizes) -> Tensor:
            embeddings = self._embed(tokens)
            columns = pad_columns(weights, len(embeddings)).to(embeddings.device)
            parts = columns.split(sizes.tangents)
            rows = [
                self._push_chunk(tokens, embeddings, part, chosen, sizes, keep and not k, layer)
                for k, part in enumerate(parts)
            ]
            return torch.cat(rows, dim=1)

        def needs(sizes: Sizes) -> int:
            kept = tape_bytes(self._shape, n + t, sizes) if keep else 0
            return kept + push_bytes(self._shape, n + t, len(weights), sizes)

        return self._fitting(attempt, needs)

    @torch.no_grad()
    def push_batch(
        self, batch: Sequence[Tokens], weights: Sequence[Tensor], *, at_once: int = 8
    ) -> list[Tensor]:
        """`push` for many examples, `at_once` in one pass, each (T, t); T may differ between them.

        Examples are padded on the right to the longest of a pass, where causality hides the padding,
        so examples of similar length are put together. Worth it on a GPU; a CPU gains nothing.
        """
        if at_once < 1:
            raise LRP4RAGError(f"at_once must be 1 or more, got {at_once}")
        for tokens, one in zip(batch, weights, strict=True):
            n, t = lengths_of(tokens)
            check_weights(one, n, n + t - 1)
        lengths = [len(tokens.prompt_ids) + len(tokens.response_ids) for tokens in batch]
        order = sorted(range(len(batch)), key=lengths.__getitem__)
        results: dict[int, Tensor] = {}
        for start in range(0, len(order), at_once):
            chosen = order[start : start + at_once]
            rows = self._push_padded([batch[k] for k in chosen], [weights[k] for k in chosen])
            results.update(zip(chosen, rows, strict=True))
        return [results[k] for k in range(len(batch))]

    def _push_padded(self, batch: Sequence[Tokens], weights: Sequence[Tensor]) -> list[Tensor]:
        parts = [self._embed(tokens) for tokens in batch]
        longest, most = max(len(part) for part in parts), max(len(one) for one in weights)
        embeddings = torch.stack([F.pad(part, (0, 0, 0, longest - len(part))) for part in parts])
        columns = [F.pad(one, (0, longest - one.shape[1], 0, most - len(one))) for one in weights]
        stacked = torch.stack(columns, dim=1).to(embeddings.device)
        sizes = self.sizes_for(longest * len(batch), most)
        states = [self.replayer.run(embeddings, part, sizes) for part in stacked.split(sizes.tangents)]
        rows = []
        for k, (tokens, one) in enumerate(zip(batch, weights, strict=True)):
            end = len(tokens.prompt_ids) - 1 + len(tokens.response_ids)
            response = slice(len(tokens.prompt_ids) - 1, end)
            explained = self.explain(states[0], k, response, tokens.response_ids)
            pushed = [explained.read(state.at(k, response)[1]) * state.scale[:, k, None] for state in states]
            rows.append(torch.cat(pushed)[: len(one)])
        return rows

    def prefix(
        self,
        ids: Sequence[int],
        weights: Tensor | None = None,
        *,
        composites: Sequence[Composite] | None = None,
        observer: Observer | None = None,
        staged: bool | None = None,
        after: Prefix | None = None,
    ) -> Prefix:
        """Read a prompt once, with tangents `weights` (T, n), for several responses or a stream.

        `composites` names one for each tangent, so that one pass serves several; without weights there
        are no tangents. `observer` sees the layers. `staged`, the default without an observer, lets tangents
        join near where they begin; an observer then sees the last stage only. `after` is a prefix without
        tangents to go on from. Raises `InputError` for composites that need stacks of their own.
        """
        if weights is None:
            weights = torch.zeros(0, len(ids))
        else:
            check_weights(weights, len(ids))
        if composites is not None:
            self._check_composites(composites, len(weights))
        return Prefix(
            self, ids, weights, composites=composites, observer=observer, staged=staged, after=after
        )

    def _check_composites(self, composites: Sequence[Composite], tangents: int) -> None:
        if len(composites) != tangents:
            raise LRP4RAGError(f"{tangents} tangents need {tangents} composites, got {len(composites)}")
        for one in composites:
            if not one_stack(self.model, self.composite, one):
                raise InputError(
                    f"'{one.name}' and '{self.composite.name}' cannot share one stack on this model"
                )

    def push_shared(self, batch: Sequence[Tokens], weights: Tensor) -> list[Tensor]:
        """`push` for several responses to one prompt, whose part of the work is done once."""
        prompts = {tuple(tokens.prompt_ids) for tokens in batch}
        if len(prompts) != 1:
            raise LRP4RAGError(f"the examples of a shared prefix must have one prompt, not {len(prompts)}")
        prefixes = [self.prefix(batch[0].prompt_ids, part) for part in weights.split(self._sizes.tangents)]
        return [torch.cat([prefix.push(tokens.response_ids) for prefix in prefixes]) for tokens in batch]

    @torch.no_grad()
    def pull(
        self,
        tokens: Tokens,
        weights: Tensor | None = None,
        *,
        all_columns: bool = False,
        layer: int = 0,
        visit: Visit | None = None,
    ) -> Tensor:
        """`sum_j weights[:, j] R[j, i]` for every prompt token i: (C, t) -> (C, n).

        Without weights, one cotangent per response token: the full R*, (t, n). With
        `all_columns`, (C, N): earlier response tokens too. `visit` sees the cotangents on their way.
        """
        n, t = lengths_of(tokens)
        if weights is not None and (weights.ndim != 2 or weights.shape[1] != t):
            raise LRP4RAGError(f"weights must be (any, {t}), got {tuple(weights.shape)}")
        self._check_layer(layer)
        require_pull(self.model)
        rows = torch.eye(t) if weights is None else weights

        # As with tangents: half precision must not lose small weights. A visitor sees cotangents unscaled.
        largest = rows.abs().amax(1)
        scale = power_of_two(largest) if visit is None else torch.ones_like(largest)

        def attempt(sizes: Sizes) -> Tensor:
            tape = self._tape_of(tokens, sizes, inputs=layer > 0)
            columns = len(tape.embeddings) if all_columns else n
            cotangents = (rows / scale[:, None]).to(tape.explained.rows)
            parts = cotangents.split(sizes.cotangents)
            pulled = [self._pull_chunk(tape, part, columns, sizes, layer, visit) for part in parts]
            self._explained_logits = tape.explained.logits
            return torch.cat(pulled) * scale[:, None].to(pulled[0])

        return self._fitting(attempt, lambda sizes: pull_bytes(self._shape, n + t, len(rows), sizes))

    def forget(self) -> None:
        """Free the replay that a `push(..., keep=True)` or `pull` remembered."""
        self._tape = None

    def explain(self, state: FinalState, example: int, positions: slice, ids: Sequence[int]) -> Explained:
        """What the flow's target explains at `positions` of an example of a replay."""
        primal = state.primal[example, positions]
        explained = self.readout.explain(primal, torch.tensor(ids, device=primal.device), self.explains)
        if not torch.isfinite(explained.logits).all():
            raise_not_finite("push", len(self.replayer.blocks), primal.dtype)
        self._explained_logits = explained.logits
        return explained

    def _push_chunk(
        self,
        tokens: Tokens,
        embeddings: Tensor,
        weights: Tensor,
        targets: Sequence[Target],
        sizes: Sizes,
        keep: bool,
        layer: int,
    ) -> Tensor:
        """Replay with tangents `weights` (T, N); returns their relevance (targets, T, t)."""
        kept = None
        if keep:
            self._tape = None
            state, kept = self.replayer.run_and_keep(embeddings, weights, sizes, layer=layer)
        else:
            state = self.replayer.run(embeddings[None], weights[:, None], sizes, layer=layer)
        response = slice(len(tokens.prompt_ids) - 1, None)
        own = self.explain(state, 0, response, tokens.response_ids)
        if kept is not None:
            self._tape = _Tape(tokens, embeddings, kept, own)
        hidden, tangents = state.at(0, response)
        ids = torch.tensor(tokens.response_ids, device=hidden.device)
        values = [
            (own if target == self.explains else self.readout.explain(hidden, ids, target)).read(tangents)
            for target in targets
        ]
        relevance = torch.stack(values) * state.scale  # (T, 1), of the one example
        if not torch.isfinite(relevance).all():
            raise_not_finite("push", len(self.replayer.blocks), hidden.dtype)
        return relevance

    def _tape_of(self, tokens: Tokens, sizes: Sizes, *, inputs: bool) -> _Tape:
        tape = self._tape
        inputs = inputs or sizes.tape == "inputs"  # kept rules would need more than these sizes allow
        if tape is None or tape.tokens is not tokens or (inputs and tape.kept.inputs is None):
            self._tape = tape = None
            embeddings = self._embed(tokens)
            if inputs:
                sizes = replace(sizes, tape="inputs")
            none = embeddings.new_zeros((0, len(embeddings)))
            self._push_chunk(tokens, embeddings, none, [self.explains], sizes, True, 0)
        assert self._tape is not None
        return self._tape

    def _embed(self, tokens: Tokens) -> Tensor:
        return self.replayer.embed((*tokens.prompt_ids, *tokens.response_ids[:-1]))

    def _pull_chunk(
        self, tape: _Tape, weights: Tensor, columns: int, sizes: Sizes, layer: int, visit: Visit | None
    ) -> Tensor:
        asked = weights.any(0).nonzero()
        first = len(tape.tokens.prompt_ids) - 1
        # Causality: no position after the last row that is asked for can matter.
        end = first + (int(asked[-1]) + 1 if len(asked) else 1)
        readout = tape.explained.rows
        c = readout.new_zeros((len(weights), end, readout.shape[1]))
        c[:, first:] = weights[:, : end - first, None] * readout[: end - first]
        c = tape.kept.final_norm.pull(c)
        blocks = self.replayer.blocks
        for k in reversed(range(layer, len(blocks))):
            rules = self.replayer.rules_of(tape.kept, k, sizes.queries)
            for part, pull in (("mlp", pull_mlp), ("attention", pull_attention)):
                if visit is not None:
                    visit(k, part, c)
                c = pull(blocks[k], rules, c)
            if not torch.isfinite(_sum(c)):  # NaN and Inf both survive a sum
                raise_not_finite("pull", k, c.dtype)
        if layer:
            assert tape.kept.inputs is not None
            values = tape.kept.inputs[layer].whole()[0][0]
        else:
            values = tape.embeddings
        relevance = (accumulate(c) * accumulate(values[:end])).sum(-1)
        return F.pad(relevance, (0, max(0, columns - end)))[:, :columns]

    def fitting_prefix(self, attempt: Callable[[Sizes], Result], length: int, tangents: int) -> Result:
        """`attempt` at sizes that fit a prefix, whose tangents are in one stack and whose rows are kept."""

        def needs(sizes: Sizes) -> int:
            together = replace(sizes, tangents=max(tangents, 1))
            return push_bytes(self._shape, length, tangents, together, cached=True)

        return self._fitting(attempt, needs)

    def sizes_for(self, length: int, tangents: int) -> Sizes:
        """The sizes of a push of `tangents` over `length` positions, within the memory that may be used."""
        if self._max_memory is None:
            return self._sizes
        return plan(lambda sizes: push_bytes(self._shape, length, tangents, sizes), self._free(), self._sizes)

    def _free(self) -> int:
        assert self._max_memory is not None
        return self._max_memory - used_bytes(self.model.get_input_embeddings().weight.device)

    def _check_layer(self, layer: int) -> None:
        if not 0 <= layer < len(self.replayer.blocks):
            raise InputError(f"layer must be from 0 to {len(self.replayer.blocks) - 1}, got {layer}")

    def _fitting(self, attempt: Callable[[Sizes], Result], needs: Callable[[Sizes], int]) -> Result:
        """Run `attempt` at sizes that fit the memory that may be used, smaller ones if it runs out."""
        sizes = self._sizes
        if self._max_memory is not None:
            sizes = plan(needs, self._free(), sizes)
        return retrying(attempt, sizes, needs)


def _sum(x: Tensor) -> Tensor:
    """In at least float32: a sum in float16 overflows where its terms do not."""
    return x.sum(dtype=x.dtype if x.dtype == torch.float64 else torch.float32)
