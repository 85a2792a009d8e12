"""The collector's pause: nothing is collected while something is imported, and it goes on afterwards."""

from __future__ import annotations

import gc

import pytest

from lrp4rag.util.garbage import uncollected


def fail_to_import() -> None:
    with uncollected():
        assert not gc.isenabled()
        raise ImportError


@pytest.mark.parametrize("running", [True, False])
def test_the_collector_is_left_as_it_was_also_after_an_error(running: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if running else gc.disable)()
        with pytest.raises(ImportError):
            fail_to_import()
        assert gc.isenabled() is running
    finally:
        (gc.enable if before else gc.disable)()
