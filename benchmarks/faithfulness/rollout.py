"""Attention rollout: attention multiplied through the layers (Abnar and Zuidema, ACL 2020, eq. 1)."""

from __future__ import annotations

import copy
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from lrp4rag.reader import Encoded, Reader

_EAGER: WeakKeyDictionary[nn.Module, Any] = WeakKeyDictionary()


@torch.no_grad()
def attention_rollout(reader: Reader, encoded: Encoded, weights: Tensor) -> Tensor:
    """sum_j w_j rollout[j, i] at the positions that predict the response tokens; never negative.

    Each layer's attention is averaged over heads and mixed half and half with the residual connection.
    """
    model = _eager(reader.model)
    n = len(encoded.prompt_ids)
    device = model.get_input_embeddings().weight.device
    ids = torch.tensor([[*encoded.prompt_ids, *encoded.response_ids[:-1]]], device=device)
    attentions = model(ids, use_cache=False, output_attentions=True, logits_to_keep=1).attentions
    rolled = torch.zeros((1, ids.shape[1]), dtype=torch.float64, device=device)
    rolled[0, n - 1 :] = weights.to(rolled)
    for attention in reversed(attentions):
        rolled = (rolled + rolled @ attention[0].double().mean(0)) / 2
    return rolled[0, :n]


def _eager(model: Any) -> Any:
    """The same model with attention that shows its weights: a twin that shares the parameters.

    Its configuration is its own, since models that share one also share the attention that is set.
    """
    if model not in _EAGER:
        shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
        twin = copy.deepcopy(model, shared)
        twin.set_attn_implementation("eager")
        _EAGER[model] = twin
    return _EAGER[model]
