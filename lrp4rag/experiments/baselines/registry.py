"""Every baseline by name: a new one is a file beside this, and a line here."""

from __future__ import annotations

from collections.abc import Iterable

from lrp4rag.errors import InputError
from lrp4rag.experiments.baselines import judge, words
from lrp4rag.experiments.baselines.baseline import Baseline

BASELINES: dict[str, Baseline] = {
    "length": words.LENGTH,
    "novel-words": words.NOVEL_WORDS,
    "lexical": words.LEXICAL,
    "log-probability": words.LOG_PROBABILITY,
    "prompt-judge": judge.TWO_ANSWERS,
    "prompt-rubric": judge.RUBRIC_JUDGE,
    "chainpoll": judge.CHAIN_POLL,
}


def baseline_named(name: str) -> Baseline:
    """Raises `InputError` that lists the known ones."""
    if name not in BASELINES:
        raise InputError(f"unknown baseline '{name}'; choose from {', '.join(BASELINES)}")
    return BASELINES[name]


def baselines_named(names: Iterable[str]) -> dict[str, Baseline]:
    """The named ones in the registry's order; "all" names all of them."""
    wanted = set(names)
    for name in wanted - {"all"}:
        baseline_named(name)
    return {name: one for name, one in BASELINES.items() if "all" in wanted or name in wanted}
