"""Answers that cite, with what is right of each citation: from a grammar, and written by hand."""

from __future__ import annotations

import functools
import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lrp4rag.source import Source

WRITTEN = Path(__file__).with_name("citation_cases.json")
RAISED = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
STARTS = ("", "In short, ", "To answer your question: ", "As a rule, ")
TAILS = ("{c}.", "{c}, so please plan for it.", "{c}. Ask your contact if that is unclear.")
MARKS: dict[str, tuple[str, ...]] = {
    "number": ("[{n}]",),
    "several": ("[{m}, {n}]",),
    "range": ("[{m}-{n}]",),
    "passage": ("(Passage {n})", "(passage {n})", "[Passage {n}]", "(Source {n})"),
    "footnote": ("[^{n}]",),
    "superscript": ("{raised}",),
    "link": ("[source]({address})", "[more]({address})", "[details]({address})"),
    "id": ("[{name}]", "({name})", "[Source: {name}]"),
}
"""By format: `n` is the passage, `m` the one that a span of passages begins with."""
NAMED: dict[str, tuple[str, ...]] = {
    "title": ("according to the {c}, {a}.", "our {c} says that {a}.", "{a}, according to our {c}."),
    "according": ("according to {c}, {a}.", "{c} says that {a}.", "{a}, according to {c}."),
    "section": ("{a} ({c}).", "{a}, see {c}.", "under {c}, {a}.", "{c} says that {a}."),
}
"""Sentences that name what they cite, `c`, for the answer `a`."""
NAMED["standard"] = NAMED["section"]
FORMATS = (*MARKS, *NAMED)
UNKNOWN = ("Relocation Policy", "Archive Manual v2.4", "Fleet Guideline", "Conduct Handbook")
STANDARDS = ("9001:2015", "27001:2022", "22301:2019", "14001:2015")


@dataclass(frozen=True, slots=True)
class Case:
    """A `response` to `sources`, and its citations in order: the text of each and its kind."""

    sources: tuple[Source, ...]
    response: str
    expected: tuple[tuple[str, str], ...]
    form: str = "written"


@dataclass(frozen=True, slots=True)
class Fact:
    """An answer with its figure, the passage (from 0) and the section that it stands in."""

    answer: str
    passage: int
    section: str


@functools.cache
def _content() -> Any:
    """Passages and answers written by hand, and facts for the grammar; `{n}` is the figure of a fact."""
    return json.loads(WRITTEN.read_text(encoding="utf-8"))


def written() -> list[Case]:
    """Those written by hand."""
    content = _content()
    return [
        Case(
            tuple(Source(**source) for source in content["passages"][case["of"]]),
            case["response"],
            tuple((text, kind) for text, kind in case["citations"]),
        )
        for case in content["cases"]
    ]


def generated(each: int = 25, seed: int = 0) -> list[Case]:
    """For each format so many true citations and so many false ones, of which half are fabricated."""
    rng = random.Random(seed)
    return [
        _case(form, kind, rng)
        for form in FORMATS
        for k in range(each)
        for kind in ("verified", "fabricated" if k % 2 else "misattributed")
    ]


def _case(form: str, kind: str, rng: random.Random) -> Case:
    iso = rng.choice(STANDARDS)
    sources, facts = _corpus(rng, f"ISO {iso}" if form == "standard" else "Section")
    fact = rng.choice(facts)
    other = rng.choice([one for one in facts if one.passage != fact.passage])
    answer, target = fact.answer, fact.passage
    if kind == "fabricated":
        target = len(sources) + rng.randrange(1, 6)
    elif kind == "misattributed" and form not in ("section", "standard") and rng.random() < 0.3:
        answer = _another_figure(answer, rng)  # the right place
    elif kind == "misattributed":
        target = other.passage
    if form in NAMED:
        cited = _name(form, kind, target, fact, facts, sources, iso, rng)
        sentence = rng.choice(NAMED[form]).format(c=cited, a=answer)
    elif form in ("several", "range") and kind == "verified" and abs(fact.passage - other.passage) == 1:
        low, high = sorted((fact.passage + 1, other.passage + 1))
        cited = MARKS[form][0].format(m=low, n=high)
        sentence = f"{rng.choice(STARTS)}{answer}, and {other.answer} {cited}."
    else:
        cited = _mark(form, kind, target, fact, sources, rng)
        if form in ("number", "several", "passage", "id") and rng.random() < 0.25:
            sentence = f"{rng.choice(STARTS)}{answer}. {cited}"
        else:
            claim = f"{answer}{'' if form == 'superscript' else ' '}{cited}"
            sentence = rng.choice(STARTS) + rng.choice(TAILS).format(c=claim)
    before = f"{_capital(other.answer)}. " if rng.random() < 0.3 else ""
    return Case(sources, before + _capital(sentence), ((cited.removeprefix("the "), kind),), form)


def _corpus(rng: random.Random, head: str) -> tuple[tuple[Source, ...], list[Fact]]:
    """A passage for each topic of a domain, with a section for each fact."""
    name, domain = rng.choice([*_content()["facts"].items()])
    topics, sources, facts = rng.sample([*domain["topics"]], len(domain["topics"])), [], []
    for number, topic in enumerate(topics):
        lines, first = [], rng.randrange(2, 7) + number * 7
        for k, fact in enumerate(domain["topics"][topic], 1):
            figure, section = rng.choice(fact["figures"]), f"{first}.{k}"
            lines.append(f"{head} {section} {topic}. {fact['passage'].format(n=figure)}")
            facts.append(Fact(fact["answer"].format(n=figure), number, section))
        version = f" v{rng.randrange(1, 5)}.{rng.randrange(9)}" if rng.random() < 0.5 else ""
        ident = f"{name}-{rng.randrange(10, 40) + 30 * number}"
        sources.append(Source("\n".join(lines), ident, f"{topic} {domain['noun']}{version}"))
    return tuple(sources), facts


def _another_figure(answer: str, rng: random.Random) -> str:
    def larger(figure: re.Match[str]) -> str:
        return str(int(float(figure[0].replace(",", "")) * 1.5) + rng.choice((1, 2, 3)))

    return re.sub(r"(?<!\S)\d(?:[\d,.]*\d)?", larger, answer, count=1)


def _mark(
    form: str, kind: str, target: int, fact: Fact, sources: tuple[Source, ...], rng: random.Random
) -> str:
    n, known = target + 1, kind != "fabricated"
    prefix = str(sources[0].id).partition("-")[0]
    name = str(sources[target].id) if known else f"{prefix}-{rng.randrange(300, 900)}"
    address = name if known else f"https://docs.example.net/{name.lower()}"
    begin = n if known else fact.passage + 1
    return rng.choice(MARKS[form]).format(n=n, m=begin, raised=RAISED[n], name=name, address=address)


def _name(
    form: str,
    kind: str,
    target: int,
    fact: Fact,
    facts: list[Fact],
    sources: tuple[Source, ...],
    iso: str,
    rng: random.Random,
) -> str:
    if form == "title":
        return rng.choice(UNKNOWN) if kind == "fabricated" else str(sources[target].title)
    if form == "according":
        ordinal = target < 3 and rng.random() < 0.3
        return f"the {('first', 'second', 'third')[target]} passage" if ordinal else f"passage {target + 1}"
    sections: dict[str, Callable[[], str]] = {
        "verified": lambda: fact.section,
        "misattributed": lambda: rng.choice([one.section for one in facts if one is not fact]),
        "fabricated": lambda: f"{rng.randrange(40, 60)}.{rng.randrange(1, 9)}",
    }
    head = f"ISO {iso} " if form == "standard" else rng.choice(("Section ", "\u00a7 ", "Sec. "))
    return head + sections[kind]()


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
