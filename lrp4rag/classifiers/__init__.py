"""Detectors: from relevance to a calibrated probability, suspect tokens and a verdict."""

from lrp4rag.classifiers.card import Card, Interval
from lrp4rag.classifiers.model import Model
from lrp4rag.classifiers.text_model import TextModel
from lrp4rag.classifiers.token_model import TokenModel  # the kinds that `Model.load` knows
from lrp4rag.classifiers.vector_model import VectorModel
from lrp4rag.classifiers.vectors import Features
from lrp4rag.classifiers.verdict import Reason, Sentence, SuspectSpan, Verdict

__all__ = [
    "Card",
    "Features",
    "Interval",
    "Model",
    "Reason",
    "Sentence",
    "SuspectSpan",
    "TextModel",
    "TokenModel",
    "VectorModel",
    "Verdict",
]
