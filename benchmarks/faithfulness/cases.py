"""Cases: synthetic prompts in the manner of RAGTruth, with planted passages."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lrp4rag.example import Example


@dataclass(frozen=True, slots=True)
class Kind:
    """One thing that can be asked of a place: {s} stands for the place, {v} for the value."""

    name: str
    question: str
    fact: str
    response: str
    values: tuple[str, ...]


FACTS = tomllib.loads((Path(__file__).parent / "facts.toml").read_text(encoding="utf-8"))
KINDS = [Kind(**{**kind, "values": tuple(kind["values"])}) for kind in FACTS["kinds"]]
PLACES, ELSEWHERE = FACTS["places"], FACTS["elsewhere"]

MAX_PROMPT = 200
"""The longest prompt, in the reader's tokens, chat template included."""

# The wording and order of RAGTruth's prompts, shortened: the whole wording would be half of so small a
# prompt, and every perturbed pass would pay for it.
TEMPLATE = (
    "Briefly answer the following question:\n{question}\nUse only the following passages:\n{context}\noutput:"
)

# What the two passages beside the planted one are: `alike` says the same of another place, `near`
# something else of the same place, `elsewhere` neither.
MIXTURES = (
    ("alike", "alike"),
    ("alike", "near"),
    ("alike", "elsewhere"),
    ("near", "elsewhere"),
    ("elsewhere", "elsewhere"),
)


@dataclass(frozen=True, slots=True)
class Case:
    """An example, the word that its target is (`answer`, in the response) and the passages that hold it,
    `planted`, from 0."""

    id: str
    kind: str
    example: Example
    answer: str
    planted: tuple[int, ...]


def needle_cases(count: int, seed: int) -> list[Case]:
    """`count` distinct cases of three passages, one of them planted. More cases extend fewer."""
    return _distinct(_needle, count, seed)


def ablation_cases(count: int, seed: int) -> list[Case]:
    """`count` distinct cases of two questions and five passages, two of them planted.

    With a passage for each question, one that is alike, one that is near and one from elsewhere, the
    passages of one prompt matter to different degrees.
    """
    return _distinct(_two_needles, count, seed)


def _distinct(make: Callable[[random.Random, int], Case], count: int, seed: int) -> list[Case]:
    cases: list[Case] = []
    seen: set[str] = set()
    # Drawn one after the other from one generator, so that the first k do not depend on `count`.
    generator = random.Random(seed)
    while len(cases) < count:
        case = make(generator, len(cases))
        if case.example.content_hash not in seen:
            seen.add(case.example.content_hash)
            cases.append(case)
    return cases


def _needle(generator: random.Random, index: int) -> Case:
    kind = KINDS[index % len(KINDS)]
    mixture = MIXTURES[index // len(KINDS) % len(MIXTURES)]
    place, *places = generator.sample(PLACES, 4)
    value, *values = generator.sample(kind.values, 4)
    others = _others(generator, mixture, kind, place, places, values)
    position = generator.randrange(3)
    passages = [*others[:position], kind.fact.format(s=place, v=value), *others[position:]]
    example = Example(
        question=kind.question.format(s=place),
        passages=tuple(passages),
        response=kind.response.format(v=value),
        template=TEMPLATE,
        id=f"needle-{index}",
    )
    return Case(example.id, kind.name, example, value, (position,))


def _two_needles(generator: random.Random, index: int) -> Case:
    first, second, third = generator.sample(KINDS, 3)
    place, other, *places = generator.sample(PLACES, 6)
    answers = [generator.choice(first.values), generator.choice(second.values)]
    values = [value for value in first.values if value != answers[0]]
    others = _others(generator, ("alike", "elsewhere"), first, place, places, values)
    near = third.fact.format(s=other, v=generator.choice(third.values))
    planted = [first.fact.format(s=place, v=answers[0]), second.fact.format(s=other, v=answers[1])]
    passages = [*planted, *others, near]
    generator.shuffle(passages)
    example = Example(
        question=f"{first.question.format(s=place)} {second.question.format(s=other)}",
        passages=tuple(passages),
        response=f"{first.response.format(v=answers[0])} {second.response.format(v=answers[1])}",
        template=TEMPLATE,
        id=f"ablation-{index}",
    )
    where = tuple(sorted(passages.index(passage) for passage in planted))
    return Case(example.id, f"{first.name} and {second.name}", example, answers[0], where)


def _others(
    generator: random.Random,
    mixture: Sequence[str],
    kind: Kind,
    place: str,
    places: Sequence[str],
    values: Sequence[str],
) -> list[str]:
    """The passages beside the planted one, in random order; no two are the same."""
    kinds = generator.sample([other for other in KINDS if other is not kind], len(mixture))
    apart = generator.sample(ELSEWHERE, len(mixture))
    made: dict[str, Callable[[int], str]] = {
        "alike": lambda k: kind.fact.format(s=places[k], v=values[k]),
        "near": lambda k: kinds[k].fact.format(s=place, v=generator.choice(kinds[k].values)),
        "elsewhere": lambda k: apart[k],
    }
    others = [made[name](k) for k, name in enumerate(mixture)]
    generator.shuffle(others)
    return others
