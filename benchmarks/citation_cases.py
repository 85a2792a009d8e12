"""Answers that cite, with what is right of each citation: from a grammar, and written by hand."""

from __future__ import annotations

import functools
import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lrp4rag.source import Source

WRITTEN = Path(__file__).parent / "citation_cases.json"
FORMATS = (
    "number",
    "several",
    "range",
    "passage",
    "according",
    "footnote",
    "superscript",
    "link",
    "title",
    "id",
    "section",
    "standard",
)


@dataclass(frozen=True, slots=True)
class Case:
    """A `response` to `sources`, and its citations in order: the text of each and its kind."""

    sources: tuple[Source, ...]
    response: str
    expected: tuple[tuple[str, str], ...]
    form: str = "written"


_RAISED = "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
_TAILS = ("{c}.", "{c}, so please plan for it.", "{c}. Ask your contact if that is unclear.")
_STARTS = ("", "In short, ", "To answer your question: ", "As a rule, ")


@dataclass(frozen=True, slots=True)
class _Said:
    """A fact with its figure, where it stands: passage (from 0), section."""

    answer: str
    passage: int
    section: str


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


@functools.cache
def _content() -> Any:
    """Passages and answers written by hand, and facts for the grammar; `{n}` is the figure of a fact."""
    return json.loads(WRITTEN.read_text(encoding="utf-8"))


def _case(form: str, kind: str, rng: random.Random) -> Case:
    sources, facts = _corpus(rng, standard=form == "standard")
    said = rng.choice(facts)
    changed = kind == "misattributed" and form not in ("section", "standard") and rng.random() < 0.3
    answer = said.answer
    if changed:  # the right place, another figure
        figure = next(word for word in answer.split() if word[0].isdigit())
        amount = re.match(r"[\d,.]*\d", figure)
        assert amount is not None
        more = int(float(amount[0].replace(",", "")) * 1.5) + rng.choice((1, 2, 3))
        answer = answer.replace(figure, f"{more}{figure[amount.end() :]}", 1)
    target = said.passage
    if kind == "misattributed" and not changed:
        target = rng.choice([k for k in range(len(sources)) if k != said.passage])
    if kind == "fabricated":
        target = len(sources) + rng.randrange(1, 6)
    cited, sentence = _sentence(form, target, said, answer, sources, facts, kind, rng)
    other = rng.choice([one for one in facts if one.passage != said.passage])
    before = f"{_capital(other.answer)}. " if rng.random() < 0.3 else ""
    return Case(sources, before + sentence, ((cited, kind),), form)


def _corpus(rng: random.Random, *, standard: bool) -> tuple[tuple[Source, ...], list[_Said]]:
    domains = _content()["facts"]
    name = rng.choice(list(domains))
    noun, topics = domains[name]["noun"], domains[name]["topics"]
    chosen = [*topics]
    rng.shuffle(chosen)
    iso = rng.choice(("9001:2015", "27001:2022", "22301:2019", "14001:2015"))
    sources, said = [], []
    for number, topic in enumerate(chosen):
        lines, first = [], rng.randrange(2, 7)
        for k, fact in enumerate(topics[topic], 1):
            figure = rng.choice(fact["figures"])
            section = f"{first + number * 7}.{k}"
            head = f"ISO {iso} {section}" if standard else f"Section {section}"
            lines.append(f"{head} {topic}. {fact['passage'].format(n=figure)}")
            said.append(
                _Said(fact["answer"].format(n=figure), number, section + (f"|ISO {iso}" if standard else ""))
            )
        title = f"{topic} {noun}" + (
            f" v{rng.randrange(1, 5)}.{rng.randrange(9)}" if rng.random() < 0.5 else ""
        )
        sources.append(Source("\n".join(lines), f"{name}-{rng.randrange(10, 40) + 30 * number}", title))
    return tuple(sources), said


def _sentence(
    form: str,
    target: int,
    said: _Said,
    answer: str,
    sources: Sequence[Source],
    facts: Sequence[_Said],
    kind: str,
    rng: random.Random,
) -> tuple[str, str]:
    """What is cited, and a sentence that cites it."""
    start, claim = rng.choice(_STARTS), answer
    n = target + 1
    if form in ("section", "standard"):
        section, _, body = said.section.partition("|")
        if kind == "misattributed":
            section = rng.choice([one.section for one in facts if one is not said]).partition("|")[0]
        elif kind == "fabricated":
            section = f"{rng.randrange(40, 60)}.{rng.randrange(1, 9)}"
        words = ["Section ", "\u00a7 ", "Sec. "] if form == "section" else [f"{body} "]
        cited = rng.choice(words) + section
        shapes = (
            f"{claim} ({cited}).",
            f"{claim}, see {cited}.",
            f"under {cited}, {claim}.",
            f"{cited} says that {claim}.",
        )
        return cited, _capital(rng.choice(shapes))
    if form in ("title", "according"):
        if form == "according":
            nth = ("first", "second", "third")
            cited = f"passage {n}" if n > 3 or rng.random() < 0.7 else f"the {nth[target]} passage"
        else:
            unknown = rng.choice(
                ("Relocation Policy", "Archive Manual v2.4", "Fleet Guideline", "Conduct Handbook")
            )
            cited = str(sources[target].title) if kind != "fabricated" else unknown
        the = "" if form == "according" else rng.choice(("the ", "our "))
        forms = (
            f"according to {the}{cited}, {claim}.",
            f"{the}{cited} says that {claim}.",
            f"{claim}, according to {the}{cited}.",
        )
        return cited.removeprefix("the "), _capital(rng.choice(forms))
    mark = {
        "number": f"[{n}]",
        "several": f"[{n}, {n}]" if kind != "fabricated" else f"[{said.passage + 1}, {n}]",
        "range": f"[{n}-{n}]" if kind != "fabricated" else f"[{said.passage + 1}\u2013{n}]",
        "passage": rng.choice((f"(Passage {n})", f"(passage {n})", f"[Passage {n}]", f"(Source {n})")),
        "footnote": f"[^{n}]",
        "superscript": _RAISED[n],
        "link": "",
        "id": "",
    }[form]  # fmt: skip
    if form in ("link", "id"):
        known = kind != "fabricated"
        prefix = str(sources[0].id).partition("-")[0]
        name = str(sources[target].id) if known else f"{prefix}-{rng.randrange(300, 900)}"
        if form == "id":
            mark = rng.choice((f"[{name}]", f"({name})", f"[Source: {name}]"))
        else:
            text = rng.choice(("source", "more", "details"))
            mark = f"[{text}]({name})" if known else f"[{text}](https://docs.example.net/{name.lower()})"
    space = "" if form == "superscript" else " "
    if rng.random() < 0.25 and form in ("number", "several", "passage", "id"):
        return mark, _capital(f"{start}{claim}. {mark}")
    if form in ("several", "range") and kind == "verified" and rng.random() < 0.7:
        other = rng.choice([one for one in facts if one.passage != said.passage])
        low, high = sorted((said.passage + 1, other.passage + 1))
        if form == "several" or high == low + 1:
            mark = f"[{low}, {high}]" if form == "several" else f"[{low}-{high}]"
            return mark, _capital(f"{start}{claim}, and {other.answer} {mark}.")
    return mark, _capital(start + rng.choice(_TAILS).format(c=f"{claim}{space}{mark}"))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
