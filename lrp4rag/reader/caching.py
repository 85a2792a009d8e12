"""How a model takes its key/value cache: as `cache` from transformers 5.24 on, else `past_key_values`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

NEW, FORMER = "cache", "past_key_values"


def cache_option(takes: Callable[..., Any], cache: Any) -> dict[str, Any]:
    """The cache as the keyword argument of `takes`, a model's `forward`; its `generate` takes it by the same
    name."""
    return {NEW if NEW in inspect.signature(takes).parameters else FORMER: cache}


def given_cache(options: Mapping[str, Any]) -> Any:
    """The cache among keyword arguments, or in a model's output; None where there is none."""
    return options.get(NEW, options.get(FORMER))
