"""Detectors: from relevance to a calibrated probability, suspect tokens and a verdict."""

from lrp4rag.classifiers.card import Card, Interval
from lrp4rag.classifiers.detector import FittedDetector
from lrp4rag.classifiers.features import Features
from lrp4rag.classifiers.verdict import Reason, Sentence, SuspectSpan, Verdict

__all__ = ["Card", "Features", "FittedDetector", "Interval", "Reason", "Sentence", "SuspectSpan", "Verdict"]
