"""Other libraries' messages: noise in a program whose output people read, and in its worker processes."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from typing import Any

QUIET = "LRP4RAG_QUIET"
"""Where this is set in the environment, importing lrp4rag makes other libraries quiet. The command line sets
it for the processes that it starts, which import them before any code of ours runs."""


def quiet_libraries() -> None:
    """Leave out libraries' progress bars and advice, and print our own warnings in a line."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if sys.stderr is None or not sys.stderr.isatty():  # a bar is for a person who waits
        os.environ.setdefault("TQDM_DISABLE", "1")
    # torchao's of its GPU kernels, bitsandbytes' of every cast, accelerate's of layers on disk.
    for name in ("torchao", "torch.utils._pytree", "bitsandbytes", "accelerate.big_modeling"):
        logging.getLogger(name).setLevel(logging.ERROR)
    from lrp4rag.errors import LRP4RAGWarning

    warnings.simplefilter("ignore")
    warnings.simplefilter("default", LRP4RAGWarning)
    warnings.showwarning = _show_warning


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    from lrp4rag.errors import LRP4RAGWarning
    from lrp4rag.terminal import tell

    if issubclass(category, LRP4RAGWarning):
        tell("Warning", message)
