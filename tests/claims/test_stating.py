"""What sentences of a response state: a claim, an aside that can hold one, or nothing."""

from __future__ import annotations

import pytest

from lrp4rag.claims.stating import Stating, stating, stating_of
from lrp4rag.util.sentences import sentences_in

CLAIM: Stating = "a claim"
ASIDE: Stating = "an aside"
NOTHING: Stating = "nothing"

TEXTS: list[tuple[str, Stating, Stating]] = [
    # Greetings, courtesies and assents.
    ("Hello!", NOTHING, NOTHING),
    ("Hi there,", NOTHING, NOTHING),
    ("Great question!", NOTHING, NOTHING),
    ("Certainly!", NOTHING, NOTHING),
    ("I'm very sorry.", NOTHING, NOTHING),
    ("You\u2019re welcome!", NOTHING, NOTHING),
    ("Kind regards", NOTHING, NOTHING),
    ("Hello, it costs 5 euros!", CLAIM, CLAIM),
    ("Unfortunately, the fee is 5 euros.", CLAIM, CLAIM),
    # Words of courtesy that answer.
    ("You can.", CLAIM, CLAIM),
    ("You certainly can.", CLAIM, CLAIM),
    ("Of course you can.", CLAIM, CLAIM),
    ("We are.", CLAIM, CLAIM),
    # Short answers.
    ("Yes.", CLAIM, CLAIM),
    ("No", CLAIM, CLAIM),
    ("**Yes**", CLAIM, CLAIM),
    ("## No", CLAIM, CLAIM),
    ("**16 weeks**", CLAIM, CLAIM),
    ("**It is free.**", CLAIM, CLAIM),
    ("**Answer:** 31 metres", CLAIM, CLAIM),
    ("1874", CLAIM, CLAIM),
    ("Robert Hale.", CLAIM, CLAIM),
    # Headings, if something follows them.
    ("# Opening hours", CLAIM, NOTHING),
    ("**Fees:**", ASIDE, NOTHING),
    ("**Marlow Lighthouse**", CLAIM, NOTHING),
    ("**The lighthouse of Marlow is very tall**", CLAIM, CLAIM),
    ("Opening hours", CLAIM, ASIDE),
    ("Opening hours:", ASIDE, ASIDE),
    ("## Fees of 2024", CLAIM, CLAIM),
    # Offers and lead-ins.
    ("Let me know if you have any further questions.", ASIDE, ASIDE),
    ("I hope this helps!", ASIDE, ASIDE),
    ("Thank you for asking.", ASIDE, ASIDE),
    ("For more information, contact HR.", ASIDE, ASIDE),
    ("Call extension 4711 within 2 days for more information.", CLAIM, CLAIM),
    ("Based on the provided passages:", ASIDE, ASIDE),
    ("Based on the provided passages, it is tall.", CLAIM, CLAIM),
    ("In summary:", ASIDE, ASIDE),
    ("Here are the steps:", ASIDE, ASIDE),
    ("The fee of 5 euros is due as follows:", CLAIM, CLAIM),
    # Questions.
    ("Is it open on Sundays?", ASIDE, ASIDE),
    ("Did you know that it is 31 metres tall?", ASIDE, ASIDE),
    ("\u771f\u7684\u5417?", ASIDE, ASIDE),
    # That the passages tell nothing is a claim of them.
    ("I do not know.", CLAIM, CLAIM),
    ("I can\u2019t answer this from the passages.", CLAIM, CLAIM),
    ("The passages do not say when it was built.", CLAIM, CLAIM),
    ("Unable to answer based on given passages.", CLAIM, CLAIM),
    # Citations.
    ("[1][2]", NOTHING, NOTHING),
    ("(Passage 2)", NOTHING, NOTHING),
    ("Sources: [1], [3]", NOTHING, NOTHING),
    ("It is tall [1].", CLAIM, CLAIM),
    # Signs.
    ("\U0001f44d", NOTHING, NOTHING),
    ("---", NOTHING, NOTHING),
    ("...", NOTHING, NOTHING),
    ("| --- | --- |", NOTHING, NOTHING),
    ("| Fee | 5 euros |", CLAIM, CLAIM),
    # Items and code.
    ("1.", NOTHING, NOTHING),
    ("- Milan", CLAIM, CLAIM),
    ("2. Apply online", CLAIM, CLAIM),
    ("- Hello!", NOTHING, NOTHING),
    ("- See also:", ASIDE, ASIDE),
    ("```python", NOTHING, NOTHING),
    ("```", NOTHING, NOTHING),
]


@pytest.mark.parametrize(("text", "alone", "followed"), TEXTS)
def test_what_a_sentence_states(text: str, alone: Stating, followed: Stating) -> None:
    assert stating(text) == alone
    assert stating(text, followed=True) == followed


@pytest.mark.parametrize("text", [text for text, alone, _ in TEXTS if alone == CLAIM])
def test_white_space_and_quotation_marks_change_nothing_of_a_claim(text: str) -> None:
    assert stating(f" {text} ") == CLAIM
    assert stating(f"\u201c{text}\u201d") == CLAIM


def test_something_that_is_added_is_stated() -> None:
    """What states nothing hides no claim that stands in the same sentence."""
    for text, alone, _ in TEXTS:
        if alone != CLAIM and text[-1].isalnum() and not text.startswith("`"):
            assert stating(f"{text} and the fee is 5 euros.") == CLAIM


def test_a_long_sentence_is_no_courtesy() -> None:
    text = "Let me know whether " + "the keeper of the old lighthouse lives here and " * 7
    assert stating(text[:290]) == ASIDE
    assert stating(text) == CLAIM


def test_a_line_is_a_heading_only_where_another_line_follows_it() -> None:
    text = "**Fees**\n\nIt is free. **Fees** It is so.\n\n**Fees**"
    statements = sentences_in(text)
    assert [text[start:end] for start, end in statements][:2] == ["**Fees**", "It is free."]
    found = stating_of(text, statements)
    assert found[0] == NOTHING
    assert set(found[1:]) == {CLAIM}


def test_a_text_without_a_statement_states_nothing() -> None:
    assert stating_of("  \n", sentences_in("  \n")) == []
