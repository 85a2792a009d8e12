"""Invariant 7: a planted fact is found. The passage that holds the answer gets the largest relevance.

All cases that were tried are here, in every position, and all hold under `attnlrp` and `cp_lrp`. Under
`paper`, tried on the eight of the latter kind, three fail in every position ("metal", "phone", "dye").
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from lrp4rag.example import Example
from lrp4rag.lrp import relevance_mode
from lrp4rag.lrp.attribution import segment_weights, span_weights
from lrp4rag.reader import Reader


@dataclass(frozen=True, eq=False)
class Case:
    name: str
    question: str
    needle: str
    others: list[str]
    response: str
    answer: str

    def example(self, position: int) -> Example:
        passages = [*self.others[:position], self.needle, *self.others[position:]]
        return Example(question=self.question, passages=passages, response=self.response)


# In the first three the other passages say the same of something else; else they are about something else.
LINES = (Path(__file__).parent / "needles.jsonl").read_text(encoding="utf-8").splitlines()
CASES = {case.name: case for case in (Case(**json.loads(line)) for line in LINES)}
EVERYWHERE = [(name, position) for name, case in CASES.items() for position in range(len(case.others) + 1)]


@cache
def passage_relevance(reader: Reader, case: Case, position: int, composite: str = "attnlrp") -> np.ndarray:
    """The mean relevance of each passage for the tokens of the answer."""
    encoded = reader.encode(case.example(position))
    start = case.response.index(case.answer)
    weights = span_weights(encoded, [(start, start + len(case.answer))])
    with relevance_mode(reader.model, composite) as flow:
        relevance = flow.pull(encoded, weights)[0]
    return (segment_weights(encoded)[2:] @ relevance.double()).numpy()


@pytest.mark.parametrize(("name", "position"), [("bridge", 0), ("phone", 2)])
def test_the_passage_with_the_answer_is_found(name: str, position: int, default_reader: Reader) -> None:
    assert passage_relevance(default_reader, CASES[name], position).argmax() == position


@pytest.mark.slow
@pytest.mark.parametrize(("name", "position"), EVERYWHERE)
@pytest.mark.parametrize("composite", ["attnlrp", "cp_lrp"])
def test_all_cases(name: str, position: int, composite: str, default_reader: Reader) -> None:
    assert passage_relevance(default_reader, CASES[name], position, composite).argmax() == position


def test_an_answer_that_no_passage_holds_rests_on_none_so_much(default_reader: Reader) -> None:
    """The same response, with and without its fact in the passage."""
    case = CASES["bridge"]
    without = replace(case, needle=case.needle.replace("1887", "1962"))
    with_fact, without_fact = (
        passage_relevance(default_reader, variant, 0)[0] for variant in (case, without)
    )
    assert without_fact < with_fact / 2
