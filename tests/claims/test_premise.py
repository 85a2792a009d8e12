"""The sentences of the passages that a comparer reads beside a claim."""

from __future__ import annotations

from lrp4rag.claims.answer import Passages
from lrp4rag.features.entailment import WORDS, points_back, premise_of

MANUAL = (
    "K130 washer, section 4: starting up. Use a hose of at most 25 m. Vent it for 30 seconds; only then "
    "switch on the motor. After 20 minutes of work, let the motor rest for 10 minutes. Store it dry.",
    "K160 washer, section 4: starting up. Vent it for 45 seconds. The K160 may work for 45 minutes.",
)
QUESTION = "How long may I run the K130?"


def passages(*texts: str) -> Passages:
    return Passages(QUESTION, texts or MANUAL)


def test_it_has_what_says_most_of_the_claim_and_says_of_what():
    found = premise_of(passages(), "The K130's motor works for 20 minutes and then rests.")
    assert "After 20 minutes of work, let the motor rest for 10 minutes." in found
    assert found.startswith("K130 washer, section 4: starting up.")
    assert "Store it dry" not in found


def test_sentences_keep_their_order_and_gaps_are_marked():
    found = premise_of(passages(), "Vent it for 45 seconds; the motor rests after 20 minutes.")
    assert found.index("20 minutes") < found.index("| K160 washer") < found.index("45 seconds")
    assert "..." in found


def test_a_claim_that_points_back_is_looked_for_with_the_sentence_before():
    claim = "Only then comes that."
    assert points_back(claim)
    assert "only then switch on" in premise_of(passages(), claim, "Vent the washer for 30 seconds.")
    assert not points_back("The washer K130 needs a hose of 25 m.")


def test_it_is_short_however_long_the_passages_are():
    long = " ".join(f"The motor number {k} runs for {k} minutes and rests then." for k in range(400))
    assert len(premise_of(passages(long), "The motor runs for 20 minutes.").split()) <= WORDS + 20


def test_without_a_word_in_common_it_is_what_was_asked_for():
    assert "K130" in premise_of(passages(), "Bananas are yellow fruit everywhere.")


def test_passages_without_text_say_nothing():
    assert premise_of(passages(""), "Anything.") == ""
