"""Which answers a second opinion is asked about."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrp4rag.guard.second_opinion import Sampler

KEY = bytes(range(32))
IDS = [f"{k:024x}" for k in range(20_000)]


def chosen(share: float, key: bytes = KEY) -> set[str]:
    sampler = Sampler(key, share)
    return {one for one in IDS if sampler.chosen(one, escalated=False)}


def test_all_escalated_answers_are_asked_about() -> None:
    assert {Sampler(KEY, 0.0).chosen(one, escalated=True) for one in IDS[:100]} == {"escalated"}


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_a_share_of_the_others_is(share: float) -> None:
    # Five standard deviations.
    assert abs(len(chosen(share)) / len(IDS) - share) < 5 * (share * (1 - share) / len(IDS)) ** 0.5


def test_a_choice_stays_the_same_over_versions() -> None:
    sampler = Sampler(KEY, 0.25)
    assert "".join(id[-1] for id in IDS[:16] if sampler.chosen(id, escalated=False)) == "0279acef"


@given(st.text(), st.floats(0, 1))
def test_any_id_can_be_asked_for(name: str, share: float) -> None:
    assert Sampler(KEY, share).chosen(name, escalated=False) in ("sampled", None)
    assert Sampler(KEY, 1.0).chosen(name + "\ud800", escalated=False) == "sampled"


@pytest.mark.parametrize("share", [-0.01, 1.01, float("nan"), float("inf")])
def test_what_is_no_share_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="share"):
        Sampler(KEY, share)


def test_a_short_key_is_refused_and_none_is_shown() -> None:
    with pytest.raises(ValueError, match="key"):
        Sampler(b"short", 0.1)
    assert "x01" not in repr(Sampler(KEY, 0.1))
