"""Silence other libraries' progress bars and advice, in the program and in its worker processes."""

from __future__ import annotations

import logging
import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

QUIET = "LRP4RAG_QUIET"
"""Where this is set in the environment, importing lrp4rag makes other libraries quiet. The command line sets
it for the processes that it starts, which import them before any code of ours runs."""


# torchao logs its GPU kernels, bitsandbytes every cast, accelerate layers on disk.
_LOGGERS = ("torchao", "torch.utils._pytree", "bitsandbytes", "accelerate.big_modeling")
_LOADING = threading.RLock()  # the settings are those of the process


@contextmanager
def quietly() -> Iterator[None]:
    """Silence libraries' progress bars and advice until the block ends, in a program that is not ours. The
    program's own settings stay."""
    from transformers.utils import logging as transformers

    with _LOADING, warnings.catch_warnings(), ExitStack() as undo:
        warnings.simplefilter("ignore")
        for logger in map(logging.getLogger, (*_LOGGERS, "transformers")):
            if logger.level in (logging.NOTSET, logging.WARNING):
                undo.callback(logger.setLevel, logger.level)
                logger.setLevel(logging.ERROR)
        if transformers.is_progress_bar_enabled():
            undo.callback(transformers.enable_progress_bar)
            transformers.disable_progress_bar()  # type: ignore[no-untyped-call]
        yield


def quiet_libraries() -> None:
    """Silence libraries' progress bars and advice, and print our own warnings in a line."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if sys.stderr is None or not sys.stderr.isatty():  # a bar is for a person who waits
        os.environ.setdefault("TQDM_DISABLE", "1")
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.ERROR)
    from lrp4rag.util.errors import LRP4RAGWarning

    warnings.simplefilter("ignore")
    warnings.simplefilter("default", LRP4RAGWarning)
    warnings.showwarning = _show_warning


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    from lrp4rag.util.errors import LRP4RAGWarning
    from lrp4rag.util.terminal import tell

    if issubclass(category, LRP4RAGWarning):
        tell("Warning", message)
