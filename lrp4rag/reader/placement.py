"""How a reader is called: where its layers are, on one device, on several, or away between calls
(accelerate's hooks), and by which name it takes its key/value cache.

A layer that is away has its weights in main memory or on disk, and none of its own: a hook around its
`forward` loads them for one call. What reads weights without a call reads them with `weight_of`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psutil
import torch
from torch import Tensor

from lrp4rag.util.errors import LRP4RAGError

AUTO = "auto"
"""The name of all devices together."""

WEIGHTS = 0.8
"""The part of a device's memory that weights may take; the rest is for what passes compute."""

_HOOK = "_hf_hook"


def is_away(module: Any) -> bool:
    """Whether the layer has none of its weights now."""
    return any(one.is_meta for one in module.parameters(recurse=False))


def forward_name(module: Any) -> str:
    """The attribute of the instance that computes; a hook around it stays where it is."""
    return "_old_forward" if _HOOK in module.__dict__ else "forward"


@contextmanager
def present(module: Any) -> Iterator[None]:
    """The layer has its weights until the block ends, on the device where it computes. What was read of them
    stays valid."""
    hook = module.__dict__.get(_HOOK)
    if hook is None or not is_away(module):
        yield
        return
    hook.pre_forward(module)
    try:
        yield
    finally:
        hook.post_forward(module, None)


def weight_of(module: Any, name: str = "weight") -> Any:
    """A weight of a layer, loaded where it is away; raises `LRP4RAGError` where nothing can load it."""
    with present(module):
        found = getattr(module, name)
    if isinstance(found, Tensor) and found.is_meta:
        raise LRP4RAGError(
            f"the weights of a {type(module).__name__} are on no device, and nothing loads them; load the "
            "model by load_reader(..., device='auto'), or with its weights in memory"
        )
    return found


def device_of(module: Any) -> torch.device:
    """Where a layer computes."""
    device: torch.device = module.weight.device
    if device.type != "meta":
        return device
    hook = module.__dict__.get(_HOOK)
    for one in getattr(hook, "hooks", [hook]):
        if (found := getattr(one, "execution_device", None)) is not None:
            return torch.device(found)
    return device


def input_device(model: Any) -> torch.device:
    """Where the model takes tokens."""
    return device_of(model.get_input_embeddings())


def devices_of(model: Any) -> set[torch.device]:
    """Where the model computes, all layers together."""
    return {device_of(one) for one in model.modules() if isinstance(getattr(one, "weight", None), Tensor)}


def visiting_bytes(model: Any) -> int:
    """What a pass loads at a time of layers that are away: the largest of them, twice, since a pull holds the
    matrices of a gate and of what it gates."""
    away = (module for module in model.modules() if is_away(module))
    sizes = [sum(one.nbytes for one in module.parameters(recurse=False)) for module in away]
    return 2 * max(sizes, default=0)


def room_for_weights(max_memory: int | None) -> dict[int | str, int]:
    """How many bytes of weights each GPU, and main memory, may hold: what does not fit stays on disk.

    `max_memory` bounds what computes: each GPU, or this process where there is none.
    """
    room: dict[int | str, int] = {}
    for number in range(torch.cuda.device_count()):
        free = torch.cuda.mem_get_info(number)[0]
        room[number] = int(WEIGHTS * min(free, max_memory or free))
    free = psutil.virtual_memory().available
    if not room and max_memory is not None:
        free = min(free, max(0, max_memory - psutil.Process().memory_info().rss))
    return room | {"cpu": int(WEIGHTS * free)}


CACHE, FORMER_CACHE = "cache", "past_key_values"
"""The name of a key/value cache from transformers 5.24 on, and before."""


def cache_option(takes: Callable[..., Any], cache: Any) -> dict[str, Any]:
    """The cache as the keyword argument of `takes`, a model's `forward`; its `generate` takes it by the same
    name."""
    return {CACHE if CACHE in inspect.signature(takes).parameters else FORMER_CACHE: cache}


def given_cache(options: Mapping[str, Any]) -> Any:
    """The cache among keyword arguments, or in a model's output; None where there is none."""
    return options.get(CACHE, options.get(FORMER_CACHE))
