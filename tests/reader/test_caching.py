"""A model takes its cache by the name that its release of transformers has for it."""

from typing import Any

import pytest

from lrp4rag.reader.caching import cache_option, given_cache


def new(ids: object, cache: Any = None, **more: object) -> None: ...


def former(ids: object, past_key_values: Any = None, **more: object) -> None: ...


@pytest.mark.parametrize(("takes", "name"), [(new, "cache"), (former, "past_key_values")])
def test_the_cache_goes_by_the_name_in_the_signature(takes: Any, name: str) -> None:
    assert cache_option(takes, "held") == {name: "held"}
    assert given_cache({name: "held", "use_cache": True}) == "held"


def test_there_may_be_no_cache() -> None:
    assert given_cache({"use_cache": False}) is None
