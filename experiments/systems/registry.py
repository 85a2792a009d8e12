"""Every baseline by name: a new one is a file beside this, and a line here."""

from __future__ import annotations

from collections.abc import Iterable
from pkgutil import resolve_name

from experiments.systems.baseline import Baseline
from lrp4rag.util.errors import InputError

PLACES = {
    "length": "simple:LENGTH",
    "novel-words": "simple:NOVEL_WORDS",
    "lexical": "simple:LEXICAL",
    "log-probability": "simple:LOG_PROBABILITY",
    "lookback-lens": "lookback:LOOKBACK_WHOLE",
    "lookback-lens-windows": "lookback:LOOKBACK_WINDOWS",
    "saplma-linear": "saplma:SAPLMA_LINEAR",
    "saplma": "saplma:SAPLMA_MLP",
    "prompt-judge": "judge:TWO_ANSWERS",
    "lettucedetect": "lettuce:LETTUCE",
    "ragulator-encoder": "entailment:RAGULATOR_ENCODER",
    "ragulator-forest": "ragulator:RAGULATOR_FOREST",
    "ragulator-lightgbm": "ragulator:RAGULATOR_LIGHTGBM",
    "ragulator-annotated": "ragulator:RAGULATOR_ANNOTATED",
    "ragulator-prompted": "ragulator:RAGULATOR_PROMPTED",
    "entailment": "entailment:ENTAILMENT",
    "grounded-in-context": "grounded:GROUNDED",
    "selfcheck-ngram": "selfcheck:SELFCHECK_NGRAM",
    "selfcheck-embedding": "selfcheck:SELFCHECK_EMBEDDING",
    "selfcheck-nli": "selfcheck:SELFCHECK_NLI",
    "selfcheck-prompt": "selfcheck:SELFCHECK_PROMPT",
    "redeep-token": "redeep:REDEEP_TOKEN",
    "redeep-chunk": "redeep:REDEEP_CHUNK",
    "fine-tuned-llm": "finetuned:FINE_TUNED",
    "prompt-rubric": "judge:RUBRIC_JUDGE",
    "chainpoll": "judge:CHAIN_POLL",
}
"""Modules beside this one, and what they call it."""


def resolved(place: str) -> Baseline:
    found: Baseline = resolve_name(f"{__package__}.{place}")
    return found


BASELINES = {name: resolved(place) for name, place in PLACES.items()}


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
