"""`relevance_mode`: put one model instance in relevance mode, and take it out again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from lrp4rag.errors import RelevanceError
from lrp4rag.lrp.composites import ATTNLRP, Composite, composite_named
from lrp4rag.lrp.families import can_pull
from lrp4rag.lrp.memory import Sizes
from lrp4rag.lrp.patching import patched
from lrp4rag.lrp.propagate import Flow
from lrp4rag.lrp.readout import Target, target_named
from lrp4rag.lrp.replay import Replayer
from lrp4rag.lrp.rules import accumulate


@contextmanager
def relevance_mode(
    model: Any,
    composite: str | Composite = ATTNLRP,
    *,
    target: str | Target = "response",
    sizes: Sizes | None = None,
    max_memory: int | None = None,
) -> Iterator[Flow]:
    """Put one model instance in relevance mode; it is restored on exit, also after an exception.

    `sizes` says how much is computed at once; with `max_memory`, in bytes and of the whole process (or
    GPU), they are chosen to fit. Raises `InputError` for an unsupported architecture and
    `RelevanceError` when the patched model's logits differ from the model's own.
    """
    target, composite = target_named(target), composite_named(composite)
    checked = _CHECKED.setdefault(model, set())
    if composite.name not in checked:
        _check_logits(model, composite)
        checked.add(composite.name)
    with patched(model, composite) as (family, stack):
        replayer = Replayer(model, family, stack)
        yield Flow(model, replayer, composite, target, sizes=sizes, max_memory=max_memory)


# Models whose patched logits were found to be their own, by composite: once each is enough.
_CHECKED: WeakKeyDictionary[nn.Module, set[str]] = WeakKeyDictionary()


@torch.no_grad()
def _check_logits(model: Any, composite: Composite) -> None:
    # Spread over the vocabulary: on the control tokens at its start, half precision is far off itself.
    ids = torch.arange(1, 9, device=model.get_input_embeddings().weight.device)[None]
    ids = ids * model.config.vocab_size // 10
    expected = model(ids, use_cache=False).logits
    with patched(model, composite):
        actual = model(ids, use_cache=False).logits
    if can_pull(model) and expected.dtype in (torch.float32, torch.float64):
        error, allowed = float((actual - expected).abs().max() / expected.abs().max()), 1e-4
    else:  # kernels of quantised layers round their inputs too, to bfloat16 or even to eight bits
        wide = accumulate(actual - expected), accumulate(expected)
        error, allowed = float(wide[0].norm() / wide[1].norm()), 5e-2
    # Logits that are NaN already are reported by the layer that made them.
    if torch.isfinite(expected).all() and not error <= allowed:
        raise RelevanceError(f"patching changed the logits of this model by {error:.1e} relative")
