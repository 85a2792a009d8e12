import pytest

from lrp4rag.claims.evidence import Evidence, evidence_of
from lrp4rag.claims.places import places_of

TABLE = """Robots compared

| Model | Battery | Charge |
|---|---|---|
| Brio 3 | 22 minutes | 2 hours |
| Brio 5 | 38 minutes | 3 hours |
"""
LISTS = (
    "Brio 3:\n- runs for 22 minutes\n- charges in 2 hours\n\nBrio 5:\n- runs for 38 minutes\n- weighs 2 kg\n"
)


def evidence_in(*passages: str) -> list[Evidence]:
    return list(evidence_of(places_of(passages)))


def with_value(evidence: list[Evidence], text: str) -> Evidence:
    return next(entry for entry in evidence if any(value.text == text for value in entry.values))


def subject(evidence: list[Evidence], text: str) -> list[str]:
    return [name.text for name in with_value(evidence, text).subject]


@pytest.mark.parametrize("passage", [TABLE, LISTS])
def test_rows_and_lists_are_said_of_their_head(passage):
    evidence = evidence_in(passage)
    assert subject(evidence, "22 minutes") == ["Brio 3"]
    assert subject(evidence, "38 minutes") == ["Brio 5"]


def test_cell_has_the_words_of_its_column_and_row():
    entry = with_value(evidence_in(TABLE), "38 minutes")
    assert {"brio", "batter"} <= entry.stems
    assert "charg" not in entry.stems
    assert TABLE[entry.start : entry.end] == entry.text == "38 minutes"


def test_it_is_said_of_the_sentence_before():
    text = "The Brio 3 is small. It runs for 22 minutes. The Brio 5 is large. It runs for 38 minutes."
    evidence = evidence_in(text)
    assert subject(evidence, "22 minutes") == ["Brio 3"]
    assert subject(evidence, "38 minutes") == ["Brio 5"]


def test_sentence_without_a_name_is_said_of_what_its_passage_is_about():
    evidence = evidence_in("This is the Brio 3. The battery lasts for 22 minutes.", "Rain until 6 pm.")
    assert subject(evidence, "22 minutes") == ["Brio 3"]
    assert subject(evidence, "6 pm") == []


def test_offsets_are_those_of_the_passage():
    passages = [TABLE, LISTS, "In 2020, fees were 5 euros, and in 2021 they rose to 6 euros."]
    for entry in evidence_in(*passages):
        assert passages[entry.passage][entry.start : entry.end] == entry.text
        for value in entry.values:
            assert passages[entry.passage][value.start : value.end] == value.text


def test_no_passages_have_no_evidence():
    assert evidence_in() == evidence_in("") == []


def test_tick_may_stop_it():
    def tick() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        places_of(["One sentence."], tick)
