"""A key/value cache that grows in place while tokens come one by one, and that can be forked."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

ROOM = 64


class RoomyLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """A cache layer with room for the next tokens, where Hugging Face copies the whole cache for each.

    Room is made when single tokens come, `ROOM` at once, so that reading a prompt costs no more memory.
    """

    room: tuple[Tensor, Tensor] | None = None  # buffers that begin with `keys` and `values`

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        start = self.get_seq_length()
        end = start + key_states.shape[-2]
        if start == 0 or key_states.shape[-2] > 1:
            self.room = None
            pair: tuple[Any, Any] = super().update(key_states, value_states, *args, **kwargs)
            return pair
        if self.room is None or self.room[0].shape[-2] < end:
            assert self.keys is not None
            assert self.values is not None
            self.room = (_with_room(self.keys, ROOM), _with_room(self.values, ROOM))
        for buffer, new in zip(self.room, (key_states, value_states), strict=True):
            buffer[..., start:end, :] = new
        self.keys, self.values = (buffer[..., :end, :] for buffer in self.room)
        return self.keys, self.values


def _with_room(x: Tensor, room: int) -> Tensor:
    wider = x.new_empty((*x.shape[:-2], x.shape[-2] + room, x.shape[-1]))
    wider[..., : x.shape[-2], :] = x
    return wider


def new_cache(config: Any) -> DynamicCache:
    """Return an empty cache for a model of this configuration; sliding layers stay Hugging Face's own."""
    cache = DynamicCache(config=config)
    roomy: Any = RoomyLayer
    cache.layers = [roomy() if type(layer) is DynamicLayer else layer for layer in cache.layers]
    return cache


def add_rows(cache: DynamicCache, count: int) -> None:
    """Add further rows on the batch axis, zero for what was read so far."""
    layers: list[Any] = cache.layers
    for layer in layers:
        if count and layer.is_initialized:
            layer.keys, layer.values = (
                torch.cat([x, x.new_zeros((count, *x.shape[1:]))]) for x in (layer.keys, layer.values)
            )
        if isinstance(layer, RoomyLayer):
            layer.room = None


def fork(cache: DynamicCache) -> DynamicCache:
    """Return a cache that goes on by itself from here. What was read so far is shared, and never written
    again."""
    copied = copy.copy(cache)
    copied.layers = [copy.copy(layer) for layer in cache.layers]
    for layer in copied.layers:
        if isinstance(layer, RoomyLayer):
            layer.room = None  # it stays the first cache's own
    return copied
