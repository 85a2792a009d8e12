"""Which answers a second opinion is asked about."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from lrp4rag.guard.second_opinion import Sampler, agreement

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


Pair = tuple[bool | None, bool | None]


def pairs(both: int, detector: int, judge: int, neither: int) -> list[Pair]:
    """So many that both call grounded, only one of them, neither."""
    return [
        *[(True, True)] * both,
        *[(True, False)] * detector,
        *[(False, True)] * judge,
        *[(False, False)] * neither,
    ]


def test_a_table_of_a_textbook() -> None:
    """20 and 15 agreements, 5 and 10 disagreements: p = 0.7, by chance 0.5."""
    found = agreement(pairs(20, 5, 10, 15))
    assert found.table == {(True, True): 20, (True, False): 5, (False, True): 10, (False, False): 15}
    assert found.share == pytest.approx(0.7)
    assert found.kappa == pytest.approx(0.4)
    assert found.answers == 50
    # The interval of the large-sample formula is 0.15 to 0.65.
    assert found.low == pytest.approx(0.15, abs=0.05)
    assert found.high == pytest.approx(0.65, abs=0.05)


def test_what_is_unanswered_is_counted_and_not_scored() -> None:
    scored = pairs(20, 5, 10, 15)
    found = agreement([*scored, (True, None), (False, None), (None, None), (None, True), (None, False)])
    assert (found.unanswered, found.unjudged, found.answers) == (3, 2, 50)
    assert found.kappa == agreement(scored).kappa


@pytest.mark.parametrize("counts", [(0, 0, 0, 0), (7, 0, 0, 0), (0, 0, 0, 7), (1, 0, 0, 0)])
def test_where_there_is_nothing_to_tell_there_is_no_kappa(counts: tuple[int, int, int, int]) -> None:
    found = agreement(pairs(*counts))
    assert (found.kappa, found.low, found.high) == (None, None, None)
    assert found.share == (1 if sum(counts) else None)


@given(
    st.lists(
        st.tuples(st.sampled_from([True, False, None]), st.sampled_from([True, False, None])), max_size=60
    )
)
def test_figures_are_those_of_scikit_learn_and_lie_in_their_interval(given_pairs: list[Pair]) -> None:
    found = agreement(given_pairs)
    scored = [one for one in given_pairs if None not in one]
    assert found.answers + found.unanswered + found.unjudged == len(given_pairs)
    if found.kappa is None:
        assert len({word for one in scored for word in one}) < 2
    else:
        assert found.kappa == pytest.approx(cohen_kappa_score(*zip(*scored, strict=True)))
        assert found.low is not None
        assert found.high is not None
        assert -1 <= found.low <= found.kappa + 1e-9
        assert found.kappa - 1e-9 <= found.high <= 1
