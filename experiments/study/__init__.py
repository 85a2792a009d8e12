"""A study of token detectors from one store: `python -m experiments study`."""

from experiments.study.study import SECTIONS, Study, study

__all__ = ["SECTIONS", "Study", "study"]
