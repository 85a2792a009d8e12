"""Responses in capitals, or in Title Case, are read as the passages write their words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lrp4rag import Detector, Example
from lrp4rag.classifiers.casing import in_plain_case
from lrp4rag.reader import Reader
from tests.cli.plain_detector import plain_detector

PASSAGES = ("The Marlow lighthouse is 31 metres tall.", "Dogs may board the ferry to Sandholm.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("THE MARLOW LIGHTHOUSE IS 31 METRES TALL.", "The Marlow lighthouse is 31 metres tall."),
        ("The Marlow Lighthouse Is 31 Metres Tall.", "The Marlow lighthouse is 31 metres tall."),
        ("MARLOW LIGHTHOUSE", "Marlow lighthouse"),
        ("IT IS 45 METRES TALL!", "It is 45 metres tall!"),
        ("\U0001f44d DOGS MAY BOARD THE FERRY", "\U0001f44d Dogs may board the ferry"),
        ("- DOGS MAY BOARD\n- the ferry is tall", "- Dogs may board\n- the ferry is tall"),
        (
            "It is tall. DOGS MAY BOARD THE FERRY. It is so.",
            "It is tall. Dogs may board the ferry. It is so.",
        ),
    ],
)
def test_words_are_written_as_in_the_passages(text: str, expected: str) -> None:
    assert in_plain_case(text, PASSAGES) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "The Marlow lighthouse is 31 metres tall.",
        "Dogs may NOT board the ferry.",  # one word is stressed
        "NASA",
        "Robert Hale Lives In Sandholm",  # of its words, one is a small one
        "31 - 45 %",
        "\u771f\u7684\u5417?",
    ],
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert in_plain_case(text, PASSAGES) == text


@pytest.mark.parametrize(
    "text", ["STRASSE \u00df IS TALL AND \u0130T IS \u0130ZM\u0130R", "\ufb01N IS THE TALL FERRY"]
)
def test_a_text_keeps_its_length_and_its_letters(text: str) -> None:
    """Places in it are those of the text that was read."""
    found = in_plain_case(text, PASSAGES)
    assert len(found) == len(text)
    for one, other in zip(found, text, strict=True):
        assert one.lower() == other.lower()


def test_what_was_read_is_read_again_as_it_is() -> None:
    for text in ("THE MARLOW LIGHTHOUSE IS 31 METRES TALL. DOGS MAY BOARD.", "It Is 45 Metres Tall"):
        once = in_plain_case(text, PASSAGES)
        assert in_plain_case(once, PASSAGES) == once


def test_a_verdict_is_that_of_plain_case_with_the_words_as_they_were_written(tiny_reader: Reader) -> None:
    detector = Detector(plain_detector(tiny_reader), tiny_reader)
    plain = "The Marlow lighthouse is 45 metres tall. Dogs may not board the ferry."
    example = Example("How tall is the lighthouse?", PASSAGES, plain)
    expected, found = detector.judge_many([example, replace(example, response=plain.upper())])
    assert found.probability == expected.probability
    assert [one.status for one in found.sentences] == [one.status for one in expected.sentences]
    assert any(one.suspect for one in found.sentences)
    for mine, other in ((found.sentences, expected.sentences), (found.spans, expected.spans)):
        assert [one.text for one in mine] == [one.text.upper() for one in other]
        assert [(one.start, one.end) for one in mine] == [(one.start, one.end) for one in other]
    np.testing.assert_array_equal(found.marks.probabilities, expected.marks.probabilities)
    for mine, other in zip(found.contradictions, expected.contradictions, strict=True):
        assert plain.upper()[mine.start : mine.end] == mine.text == other.text.upper()
        assert mine.instead == other.instead  # the passage is in plain case


def test_a_stream_is_read_as_the_whole_is(tiny_reader: Reader) -> None:
    text = "THE MARLOW LIGHTHOUSE IS 45 METRES TALL. DOGS MAY NOT BOARD THE FERRY."
    with Detector(plain_detector(tiny_reader), tiny_reader, prompt_bytes=2**24) as detector:
        reading = detector.reading("How tall is the lighthouse?", PASSAGES)
        pieces = [*reading.feed(text), *reading.end()]
        whole = detector.judge("How tall is the lighthouse?", PASSAGES, text)
    assert "".join(one.text for one in pieces) == text
    judged = [one for one in pieces if one.sentence is not None]
    assert [one.sentence.text for one in judged] == [one.text for one in whole.sentences]
    for one, other in zip(judged, whole.sentences, strict=True):
        assert one.probability == pytest.approx(other.probability, abs=1e-4)
        assert one.status == other.status
