import pytest

from lrp4rag.util.sentences import sentences_in, sentences_of


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two!", ["One.", "Two!"]),
        ("Dr. Smith came at 3.14 p.m. today.", ["Dr. Smith came at 3.14 p.m. today."]),
        ("Steps:\n* first\n* second\n\nDone.", ["Steps:", "* first", "* second", "Done."]),
        ("  padded  ", ["padded"]),
        ("東京 🗼 is tall. Zoë left.", ["東京 🗼 is tall.", "Zoë left."]),
        (" \n ", []),
    ],
)
def test_spans_are_the_sentences(text, sentences):
    assert [text[start:end] for start, end in sentences_in(text)] == sentences
    assert sentences_of(text) == sentences
