"""Fixtures of the relevance tests."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> None:
    """Float32 is float64: Hugging Face's norms, softmax and rotary angles are float32 in any model.

    With it, a float64 model and its patched self agree to rounding, where they otherwise agree to 1e-6.
    """
    monkeypatch.setattr(torch, "float32", torch.float64)
    monkeypatch.setattr(torch, "float", torch.float64)
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
