"""Baselines that need no paper: what any system must beat."""

from __future__ import annotations

from experiments.systems.baseline import BestClassifier
from experiments.systems.facts import LABELS, Facts
from experiments.tokens import candidates
from lrp4rag.training.controls import novel_words, one_number
from lrp4rag.util.text import words_of

LENGTH = BestClassifier(
    Facts("Length", "", "text", LABELS, "none"),
    lambda rows, _: one_number([len(words_of(one.response or "")) for one in rows.examples], "words"),
)
NOVEL_WORDS = BestClassifier(
    Facts("Novel words", "", "text", LABELS, "none"), lambda rows, _: novel_words(rows)
)
LEXICAL = BestClassifier(
    Facts("Six lexical features", "", "text", LABELS, "none"), lambda rows, _: candidates.lexical(rows)
)
LOG_PROBABILITY = BestClassifier(
    Facts("Log-probability", "", "reader's states", LABELS, "the reader's", needs=("signals",)),
    lambda rows, _: candidates.log_probability(rows),
)
