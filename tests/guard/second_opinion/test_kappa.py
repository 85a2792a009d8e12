"""How often detector and judge agree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from lrp4rag.guard.second_opinion import agreement

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
