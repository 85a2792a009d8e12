"""JSON is read strictly, and a record that was changed is told."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrp4rag.util import strict_json
from lrp4rag.util.errors import InputError

FINITE = st.floats(allow_nan=False, allow_infinity=False)


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize("text", ['{"a": 1, "a": 1}', "NaN", "[Infinity]", "1e400", "{", DEEP, "", "\ud800"])
def test_strict_json(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any message
        strict_json.parse(text)


@given(st.dictionaries(st.text(), st.integers() | FINITE | st.text()))
def test_a_sealed_record_is_whole_and_a_changed_one_is_not(record: dict[str, Any]) -> None:
    record.pop(strict_json.SEAL, None)
    sealed = strict_json.parse(json.dumps(strict_json.sealed(record)))
    strict_json.require_seal(sealed, "x", "it")
    for changed in ({**sealed, "more": 1}, {**sealed, strict_json.SEAL: "0" * 64}, dict(record)):
        with pytest.raises(InputError, match="was changed or is damaged"):
            strict_json.require_seal(changed, "x", "it")
