"""Baselines that count and need no paper: what any system must beat."""

from __future__ import annotations

from lrp4rag.experiments.systems.baseline import LABELS, Facts
from lrp4rag.experiments.systems.contest import Contest
from lrp4rag.features.text import words_of
from lrp4rag.training import lexical, likelihood
from lrp4rag.training.tabular import one_number

LENGTH = Contest(
    Facts("Length", "", "text", LABELS, "none"),
    lambda rows, _: one_number([len(words_of(one.response or "")) for one in rows.examples], "words"),
)
NOVEL_WORDS = Contest(
    Facts("Novel words", "", "text", LABELS, "none"), lambda rows, _: lexical.novel_words(rows)
)
LEXICAL = Contest(
    Facts("Six lexical features", "", "text", LABELS, "none"), lambda rows, _: lexical.lexical(rows)
)
LOG_PROBABILITY = Contest(
    Facts("Log-probability", "", "reader's states", LABELS, "the reader's", needs=("signals",)),
    lambda rows, _: likelihood.log_probability(rows),
)
