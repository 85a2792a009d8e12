"""What replicas load in tests: the tiny reader, which takes its time."""

from __future__ import annotations

import time
from typing import Any

import torch

from lrp4rag import Detector
from lrp4rag.guard.service.settings import Settings
from lrp4rag.reader import load_reader
from tests.cli.plain_detector import plain_detector

SLOW = 0.05
"""Seconds of each of the reader's passes: requests are under way when a replica is killed."""


def load(settings: Settings) -> Detector:
    """The reader is in the settings' folder."""
    assert settings.reader is not None
    reader = load_reader(settings.reader, device="cpu")

    def wait(*_: Any) -> None:
        time.sleep(SLOW)

    reader.model.get_input_embeddings().register_forward_pre_hook(wait)
    torch.set_num_threads(1)
    return Detector(plain_detector(reader), reader, prompt_bytes=2**24)


def fail(settings: Settings) -> Detector:
    raise RuntimeError(f"no reader at {settings.reader}")
