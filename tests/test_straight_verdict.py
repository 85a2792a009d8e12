"""The way of a response from strings to its verdict."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import lrp4rag
from lrp4rag import Detector, Example
from lrp4rag.classifiers.verdict import Verdict
from lrp4rag.reader import Reader
from tests.cli.plain_detector import plain_detector
from tests.tiny import bridge_example

EXAMPLE = Example(
    "How tall is the lighthouse?",
    ["The Marlow lighthouse is 31 metres tall.", "Fish is sold nearby."],
    "IT IS 45 METRES TALL. Robert won a gold medal for it.",
)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[Verdict]:
    """Every verdict that is made, copies too."""
    made = list[Verdict]()
    check = Verdict.__post_init__
    monkeypatch.setattr(Verdict, "__post_init__", lambda self: (made.append(self), check(self))[1])
    return made


@pytest.mark.parametrize("prevalence", [None, "estimate"])
def test_a_verdict_is_built_once(tiny_reader: Reader, built: list[Verdict], prevalence: object) -> None:
    detector = Detector(plain_detector(tiny_reader), tiny_reader)
    more = 19 if prevalence else 2
    examples = [EXAMPLE, *(bridge_example(k, response=f"It opened {k} years ago.") for k in range(more))]
    verdicts = detector.judge_many(examples, prevalence=prevalence)
    assert list(map(id, built)) == list(map(id, verdicts))


def test_a_verdict_with_rows_is_built_once(tiny_reader: Reader, built: list[Verdict]) -> None:
    detector = Detector(plain_detector(tiny_reader), tiny_reader)
    verdict = detector.analyse(EXAMPLE, rows=True)
    assert len(built) == 1
    assert verdict.sentence_rows is not None


MOST_FILES = 35
"""Of the package, besides the mathematics (`lrp/`) and what claims are (`claims/`)."""
PACKAGE = Path(lrp4rag.__file__).parent


def test_a_verdict_runs_through_few_files(default_reader: Reader) -> None:
    detector, files = Detector.load(reader=default_reader), set[str]()
    sys.setprofile(lambda frame, event, _: files.add(frame.f_code.co_filename) if event == "call" else None)
    try:
        verdict = detector.judge(EXAMPLE)
    finally:
        sys.setprofile(None)
    assert verdict.hallucinated
    assert verdict.contradictions
    own = {Path(file).relative_to(PACKAGE) for file in files if Path(file).is_relative_to(PACKAGE)}
    others = {str(file) for file in own if file.parts[0] not in ("lrp", "claims")}
    assert len(others) <= MOST_FILES, sorted(others)
