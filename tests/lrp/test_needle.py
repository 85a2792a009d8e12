"""Invariant 7: a planted fact is found. The passage that holds the answer gets the largest relevance.

All cases that were tried are here, in every position, and all hold under `attnlrp` and `cp_lrp`. Under
`paper`, tried on the eight of APART, three fail in every position ("metal", "phone", "dye").
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

from lrp4rag.example import Example
from lrp4rag.lrp import relevance_mode
from lrp4rag.lrp.attribute import segment_weights, span_weights
from lrp4rag.reader import Reader


@dataclass(frozen=True)
class Case:
    question: str
    needle: str
    others: tuple[str, ...]
    response: str
    answer: str

    def example(self, position: int) -> Example:
        passages = [*self.others[:position], self.needle, *self.others[position:]]
        return Example(question=self.question, passages=passages, response=self.response)


# The other passages say the same of something else.
ALIKE = {
    "bridge": Case(
        "When was the bridge at Calder opened?",
        "The bridge at Calder was opened in 1887.",
        (
            "The bridge at Hexley was opened in 1921.",
            "The bridge at Ornsay was opened in 1954.",
            "The bridge at Tarn was opened in 1803.",
        ),
        "The bridge at Calder was opened in 1887.",
        "1887",
    ),
    "mine": Case(
        "Which metal does the Orvik mine produce?",
        "The Orvik mine produces tungsten.",
        (
            "The Skarn mine produces copper.",
            "The Dalby mine produces nickel.",
            "The Fell mine produces silver.",
        ),
        "The Orvik mine produces tungsten.",
        "tungsten",
    ),
    "ceiling": Case(
        "Who painted the ceiling of the Lund chapel?",
        "The ceiling of the Lund chapel was painted by Agnes Moravec.",
        (
            "The ceiling of the Hexley church was painted by Peter Anselm.",
            "The door of the Lund chapel was carved by Ivo Kranz.",
            "The windows of the Tarn chapel were made by Ruth Oberlin.",
        ),
        "It was painted by Agnes Moravec.",
        "Agnes Moravec",
    ),
}

# The other passages are about something else.
APART = {
    "year": Case(
        "When was the bridge at Calder opened?",
        "The bridge at Calder was opened in 1887.",
        (
            "The old mill near Hexley burned down in 1921 and was never rebuilt.",
            "The Calder bridge is 212 metres long and has six arches.",
        ),
        "The bridge was opened in 1887.",
        "1887",
    ),
    "metal": Case(
        "Which metal does the Orvik mine produce?",
        "The Orvik mine produces tungsten for lamp makers.",
        (
            "The Skarn quarry sells granite and limestone to builders.",
            "Most of the workers live in the village below the hill.",
        ),
        "The Orvik mine produces tungsten.",
        "tungsten",
    ),
    "painter": Case(
        "Who painted the ceiling of the Lund chapel?",
        "The ceiling of the Lund chapel was painted by Agnes Moravec.",
        (
            "The chapel roof was repaired twice after heavy storms.",
            "Visitors may enter the garden from the north gate.",
        ),
        "It was painted by Agnes Moravec.",
        "Agnes Moravec",
    ),
    "number": Case(
        "How many eggs does the marsh tern lay?",
        "The marsh tern lays seventeen eggs in a shallow nest.",
        ("The grey heron feeds on fish and small frogs.", "Wetlands in the delta are drained for farming."),
        "It lays seventeen eggs.",
        "seventeen",
    ),
    "phone": Case(
        "What is the phone number of the harbour office?",
        "The harbour office can be reached at 555 8214.",
        (
            "The bakery on the quay opens at six in the morning.",
            "Boats longer than ten metres need a permit.",
        ),
        "The number is 555 8214.",
        "555 8214",
    ),
    "dye": Case(
        "Which plant dye colours the cloth of Temar?",
        "The cloth of Temar is coloured with saffron.",
        ("Wool from the hills is washed in cold water.", "Traders sell copper pots at the weekly market."),
        "The cloth is coloured with saffron.",
        "saffron",
    ),
    "drink": Case(
        "What drink is served at the Velka festival?",
        "At the Velka festival people drink warm plum brandy.",
        ("The winter fair has music and a horse race.", "Tickets for the train are sold at the station."),
        "People drink warm plum brandy.",
        "plum brandy",
    ),
    "capital": Case(
        "What is the capital of Nordhavn?",
        "Nordhavn has its capital in Brisko.",
        (
            "The island of Fell has no permanent inhabitants.",
            "Fishing is the main trade of the southern coast.",
        ),
        "The capital is Brisko.",
        "Brisko",
    ),
}


def everywhere(cases: dict[str, Case]) -> list[object]:
    return [
        pytest.param(case, position, id=f"{name}-{position + 1}")
        for name, case in cases.items()
        for position in range(len(case.others) + 1)
    ]


ONCE_EACH = [
    pytest.param(ALIKE["bridge"], 0, id="bridge-1"),
    pytest.param(ALIKE["bridge"], 3, id="bridge-4"),
    pytest.param(ALIKE["mine"], 1, id="mine-2"),
    pytest.param(ALIKE["ceiling"], 2, id="ceiling-3"),
    pytest.param(APART["phone"], 2, id="phone-3"),
]


@cache
def passage_relevance(reader: Reader, case: Case, position: int, composite: str) -> np.ndarray:
    """The mean relevance of each passage for the tokens of the answer."""
    encoded = reader.encode(case.example(position))
    start = case.response.index(case.answer)
    weights = span_weights(encoded, [(start, start + len(case.answer))])[0]
    with relevance_mode(reader.model, composite) as flow:
        by_passage = flow.push(encoded, segment_weights(encoded)[2:])
    return (by_passage.double() @ weights).numpy()


@pytest.mark.parametrize(("case", "position"), ONCE_EACH)
def test_the_passage_with_the_answer_is_found(case: Case, position: int, default_reader: Reader) -> None:
    assert passage_relevance(default_reader, case, position, "attnlrp").argmax() == position


@pytest.mark.slow
@pytest.mark.parametrize(("case", "position"), everywhere(ALIKE | APART))
@pytest.mark.parametrize("composite", ["attnlrp", "cp_lrp"])
def test_all_cases(case: Case, position: int, composite: str, default_reader: Reader) -> None:
    assert passage_relevance(default_reader, case, position, composite).argmax() == position


def test_an_answer_that_no_passage_holds_rests_on_none_so_much(default_reader: Reader) -> None:
    """The same response, with and without its fact in the passage."""
    case = ALIKE["bridge"]
    other = replace(case, needle=case.needle.replace("1887", "1962"))
    lengths = {len(default_reader.encode(one.example(0)).prompt_ids) for one in (case, other)}
    assert len(lengths) == 1
    found, missed = (passage_relevance(default_reader, one, 0, "attnlrp")[0] for one in (case, other))
    assert missed < found / 2
