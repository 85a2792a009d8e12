"""One value has one spelling, and what JSON cannot hold is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrp4rag.guard.audit.entry import canonical, read_canonical, require_json
from lrp4rag.util.errors import InputError

SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False) | st.text()
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


@given(VALUES)
def test_what_is_written_is_read(value):
    try:
        plain = require_json(value, "value")
    except InputError:
        return  # infinite
    text = canonical(plain).decode()
    assert read_canonical(text) == plain
    assert canonical(read_canonical(text)).decode() == text


@pytest.mark.parametrize(
    "text",
    ['{"a":1.0}', '{"a": 1}', '{"a":1,"a":1}', '{"b":1,"a":1}', '"\\u0041"', "1E2", "-0", "01", "NaN", "",
     "[", "1e400", '"\\ud800"', "[" * 10_000, "9" * 400, b"1", None, 1, "\udcff"],
    ids=lambda text: repr(text)[:20],
)  # fmt: skip
def test_another_spelling_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011
        read_canonical(text)


DEEP: list = []
for _ in range(100):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (float("nan"), "nan is no number"),
        (float("-inf"), "-inf is no number"),
        (2**53, "not exact"),
        ("\ud800", "half a character"),
        ({1: 2}, "every key must be text"),
        ({"\udc00": 2}, "every key must be text"),
        (b"", "bytes is not JSON"),
        ({1}, "set is not JSON"),
        (DEEP, "nested deeper than 64"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_json_cannot_hold_is_refused_with_its_place(value, said):
    with pytest.raises(InputError, match=said) as caught:
        require_json({"scores": [0, value]}, "record")
    assert str(caught.value.field).startswith("record.scores[1]")
