"""Find out where a reader's layers are, on one device, on several, or offloaded between calls (accelerate's
hooks), and by which name its forward takes the key/value cache.

An offloaded layer has its weights in main memory or on disk: a hook around its `forward` loads them for
one call. Code that reads weights outside of a call uses `weight_of`.
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
    """Say whether a layer's weights are offloaded now."""
    return any(parameter.is_meta for parameter in module.parameters(recurse=False))


def forward_name(module: Any) -> str:
    """Return the attribute of the instance that computes; a hook around it stays where it is."""
    return "_old_forward" if _HOOK in module.__dict__ else "forward"


@contextmanager
def present(module: Any) -> Iterator[None]:
    """Load the layer's weights onto its device until the block ends. Tensors read from them stay valid."""
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
    """Return a weight of a layer, loaded if it is offloaded; raises `LRP4RAGError` if nothing can load it."""
    with present(module):
        weight = getattr(module, name)
    if isinstance(weight, Tensor) and weight.is_meta:
        raise LRP4RAGError(
            f"the weights of a {type(module).__name__} are on no device, and nothing loads them; load the "
            "model by load_reader(..., device='auto'), or with its weights in memory"
        )
    return weight


def device_of(module: Any) -> torch.device:
    """Return the device on which a layer computes."""
    device: torch.device = module.weight.device
    if device.type != "meta":
        return device
    hook = module.__dict__.get(_HOOK)
    for member in getattr(hook, "hooks", [hook]):
        if (place := getattr(member, "execution_device", None)) is not None:
            return torch.device(place)
    return device


def input_device(model: Any) -> torch.device:
    """Return the device on which the model takes tokens."""
    return device_of(model.get_input_embeddings())


def devices_of(model: Any) -> set[torch.device]:
    """Return the devices on which the model's layers compute."""
    modules = (module for module in model.modules() if isinstance(getattr(module, "weight", None), Tensor))
    return set(map(device_of, modules))


def visiting_bytes(model: Any) -> int:
    """Return the bytes that a pass loads at a time of offloaded layers: twice the largest layer, since a pull
    holds the matrices of a gate and of the layer that it gates."""
    away = (module for module in model.modules() if is_away(module))
    sizes = [sum(parameter.nbytes for parameter in module.parameters(recurse=False)) for module in away]
    return 2 * max(sizes, default=0)


def room_for_weights(max_memory: int | None) -> dict[int | str, int]:
    """Return the bytes of weights that each GPU, and main memory, may hold; the rest stays on disk.

    `max_memory` bounds each GPU, or this process on a machine without one.
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
    """Return the cache as the keyword argument of `takes`, a model's `forward`; its `generate` takes it by
    the same name."""
    return {CACHE if CACHE in inspect.signature(takes).parameters else FORMER_CACHE: cache}


def cache_in(options: Mapping[str, Any]) -> Any:
    """Return the cache among keyword arguments, or in a model's output; None if there is none."""
    return options.get(CACHE, options.get(FORMER_CACHE))
