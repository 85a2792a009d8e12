"""The collector's pause: nothing is collected while the library is imported, and it goes on afterwards."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from lrp4rag.util.garbage import uncollected


def test_importing_the_detector_collects_nothing() -> None:
    code = (
        "import gc, lrp4rag\n"
        "automatic = []\n"
        "gc.callbacks.append(lambda phase, _: automatic.append(phase) if gc.isenabled() else None)\n"
        "lrp4rag.Detector\n"
        "print('collections:', len(automatic), gc.isenabled())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    count, running = done.stdout.split("collections:")[1].split()
    assert int(count) < 4  # with the collector running there are hundreds
    assert running == "True"


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
