"""A case as the reader sees it, and what is explained of it as a function of the passages' embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmarks.faithfulness.cases import MAX_PROMPT, Case
from lrp4rag.reader import Encoded, Reader
from lrp4rag.reader.encoding import tokens_in
from lrp4rag.reader.placement import cache_option, given_cache
from lrp4rag.util.errors import InputError

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Sample:
    """An encoded case. n prompt and t response tokens.

    Content is what may be grounds: the passages. The question and the template say what to do with
    them; they are never perturbed, and no measure counts them.
    """

    case: Case
    encoded: Encoded
    answer: Mask  # t: the answer's tokens in the response
    gold: Mask  # n: the answer's tokens inside the planted passages

    @classmethod
    def of(cls, case: Case, reader: Reader, limit: int = MAX_PROMPT) -> Sample:
        encoded = reader.encode(case.example)
        if len(encoded.prompt_ids) > limit:
            raise InputError(f"case {case.id}: {len(encoded.prompt_ids)} prompt tokens exceed {limit}")
        start = encoded.response.index(case.answer)
        spans = []
        for k in case.planted:
            passage = case.example.passages[k]
            if case.answer in passage:
                begin = encoded.text.index(passage) + passage.index(case.answer)
                spans.append((begin, begin + len(case.answer)))
        return cls(
            case=case,
            encoded=encoded,
            answer=tokens_in(encoded.response_offsets, [(start, start + len(case.answer))]),
            gold=tokens_in(encoded.prompt_offsets, spans),
        )

    @property
    def content(self) -> Mask:
        """The tokens of all passages (n,)."""
        mask: Mask = np.array(self.encoded.segments) > 1
        return mask

    def passage(self, k: int) -> Mask:
        mask: Mask = np.array(self.encoded.segments) == 2 + k
        return mask

    def answer_mean(self) -> Tensor:
        """Row weights (t,): the mean over the answer's tokens."""
        return torch.from_numpy(self.answer / self.answer.sum())

    def first_answer_token(self) -> Tensor:
        """Row weights (t,): 1 on the answer's first token."""
        weights = torch.zeros(len(self.answer), dtype=torch.float64)
        weights[int(self.answer.argmax())] = 1
        return weights

    def response_sum(self) -> Tensor:
        """Row weights (t,): the sum over all response tokens."""
        return torch.ones(len(self.answer), dtype=torch.float64)


@dataclass(frozen=True)
class Replay:
    """sum_j w_j z_j of one example for any embeddings of its tail (m, d), in logits.

    The tail starts at the first passage. What comes before is never changed by
    perturbation, so its keys and values are computed once; what comes after the last row with weight
    cannot matter (causality) and is left out.
    """

    model: Any
    cached: tuple[tuple[Tensor, Tensor], ...]  # keys and values of the prefix, a pair per layer
    start: int  # prompt position of the tail's first token
    embeddings: Tensor  # m, d
    content: Tensor  # positions in the tail of the passages' tokens
    rows: Tensor  # positions in the tail that predict the weighted response tokens
    targets: Tensor  # their token ids
    weights: Tensor  # their weights

    @classmethod
    @torch.no_grad()
    def of(cls, model: Any, encoded: Encoded, weights: Tensor) -> Replay:
        """`weights` (t,) over response tokens, not all zero."""
        device = model.get_input_embeddings().weight.device
        n = len(encoded.prompt_ids)
        segments = torch.tensor(encoded.segments, device=device)
        start = int((segments > 1).nonzero()[0])
        chosen = weights.nonzero()[:, 0].to(device)
        ids = torch.tensor([*encoded.prompt_ids, *encoded.response_ids], device=device)
        embeddings = model.get_input_embeddings()(ids[: n + int(chosen[-1])])
        cached: tuple[tuple[Tensor, Tensor], ...] = ()
        if start:
            read = model(inputs_embeds=embeddings[None, :start], use_cache=True, logits_to_keep=1)
            cached = tuple((layer.keys, layer.values) for layer in given_cache(read).layers)
        return cls(
            model=model,
            cached=cached,
            start=start,
            embeddings=embeddings[start:],
            content=(segments > 1).nonzero()[:, 0] - start,
            rows=n - 1 - start + chosen,
            targets=ids[n + chosen],
            weights=weights.to(embeddings)[chosen],
        )

    def __call__(self, embeddings: Tensor) -> Tensor:
        """Tails (B, m, d) -> values (B,)."""
        from transformers import DynamicCache

        count = len(embeddings)
        past = None
        if self.cached:
            past = DynamicCache(
                [(k.expand(count, -1, -1, -1), v.expand(count, -1, -1, -1)) for k, v in self.cached]
            )
        logits = self.model(
            inputs_embeds=embeddings,
            use_cache=past is not None,
            **({} if past is None else cache_option(self.model.forward, past)),
            logits_to_keep=self.rows,
        ).logits
        picked = logits.gather(-1, self.targets.expand(count, -1)[..., None])[..., 0]
        value: Tensor = picked @ self.weights
        return value

    def with_content(self, content: Tensor) -> Tensor:
        """Tails (B, m, d) with other content embeddings (B, content, d), the template as it is."""
        tails = self.embeddings.expand(len(content), -1, -1).clone()
        return tails.index_copy(1, self.content, content)
