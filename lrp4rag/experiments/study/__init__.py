"""A study of token detectors from one store: `lrp4rag experiments study`."""

from lrp4rag.experiments.study.study import SECTIONS, Study, study

__all__ = ["SECTIONS", "Study", "study"]
