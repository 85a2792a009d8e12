"""Plain passes over prompts that stay read."""

from __future__ import annotations

import numpy as np
import pytest

from lrp4rag.example import Example
from lrp4rag.features.replay import PlainReplay
from lrp4rag.lrp.interrupt import interruptible
from lrp4rag.reader import Reader

PASSAGES = ["Leave lasts 16 weeks.", "You may not smoke."]


class EndedError(Exception):
    """Raised in the middle of a pass."""


@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_a_pass_that_fails_costs_its_own_prompt_only(tiny_reader: Reader, after: int) -> None:
    one, other = (
        tiny_reader.encode(Example(question, PASSAGES, "Leave lasts 18 weeks."))
        for question in ("How long is leave?", "May I smoke?")
    )
    replay, left, passes = PlainReplay(tiny_reader, 2**24), 0, 0

    def check() -> None:
        nonlocal left, passes
        passes += 1
        left -= 1
        if left == -1:
            raise EndedError

    expected = [PlainReplay(tiny_reader)(each)["logprob"] for each in (one, other)]
    replay(one)
    with interruptible(tiny_reader.model, check):
        left = after
        with pytest.raises(EndedError):
            replay(other)
        passes = 0
        again = replay(one)["logprob"]
        assert passes == 0, "its prompt was read again"
    np.testing.assert_allclose(again, expected[0], atol=1e-5)
    np.testing.assert_allclose(replay(other)["logprob"], expected[1], atol=1e-5)
