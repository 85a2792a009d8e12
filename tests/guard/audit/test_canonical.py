"""One value has one spelling, and what JSON cannot hold is refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lrp4rag.guard.audit.entry import as_stored, canonical, read_canonical
from lrp4rag.util.errors import InputError

SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False) | st.text()
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


@settings(max_examples=50)
@given(VALUES)
def test_what_is_written_is_read(value):
    try:
        text = canonical(value).decode()
    except ValueError:
        return  # infinite
    assert read_canonical(text) == value
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
        (float("nan"), "nan"),
        (float("-inf"), "inf"),
        (2**53, str(2**53)),
        ("\ud800", "UTF-8"),
        ({1: 2}, "keys must be strings"),
        ({"\udc00": 2}, "surrogates"),
        (b"", "bytes"),
        ({1}, "set"),
        (DEEP, "nested deeper than 64"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_json_cannot_hold_is_refused(value, said):
    with pytest.raises(InputError, match=said) as caught:
        as_stored({"scores": [0, value]})
    assert caught.value.field == "record"
