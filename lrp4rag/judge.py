"""`Detector`: from strings to a verdict."""

from lrp4rag.classifiers.detector import FittedDetector as Detector

__all__ = ["Detector"]
