"""A case as the reader sees it: which tokens are content, gold or the answer, and what is explained."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmarks.faithfulness.cases import MAX_PROMPT, Case
from lrp4rag.errors import InputError
from lrp4rag.reader import Encoded, Reader
from lrp4rag.reader.encoding import tokens_in

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
