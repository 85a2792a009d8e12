"""Makes a reader say given tokens, so that tests need not wait for a random model to write them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch

from lrp4rag.lrp import Flow
from lrp4rag.lrp.streaming import StreamedToken
from tests.tiny import Tokens


def make_it_say(monkeypatch: pytest.MonkeyPatch, ids: Sequence[int]) -> None:
    """`lrp4rag.generation` then streams these tokens, with the relevance of their replay."""

    def stream(
        flow: Flow, prompt_ids: Sequence[int], weights: torch.Tensor, **_: Any
    ) -> Iterator[StreamedToken]:
        pushed = flow.push(Tokens(tuple(prompt_ids), tuple(ids)), weights).numpy()
        for k, token in enumerate(ids):
            yield StreamedToken(token, pushed[:, k].copy(), float(flow.explained_logits[k]))

    monkeypatch.setattr("lrp4rag.generation.stream", stream)
