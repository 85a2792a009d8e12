"""The Makefile, as far as it can be read without running it."""

import re
from collections import Counter
from pathlib import Path

MAKEFILE = (Path(__file__).parents[1] / "Makefile").read_text()


def test_a_name_is_given_once() -> None:
    # A later value replaces an earlier one wherever it is used, in recipes above it too.
    names = Counter(re.findall(r"^(?:define )?([A-Z_]+)(?: *[:?]?=|$)", MAKEFILE, re.MULTILINE))
    assert {"BESIDE", "WEIGHTS", "EXTRACT"} <= set(names)
    assert [name for name, times in names.items() if times > 1] == []
