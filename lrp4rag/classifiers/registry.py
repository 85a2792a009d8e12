"""The classifiers by name. A new one is a function that returns a scikit-learn estimator, and a line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lrp4rag.classifiers.svm import svm
from lrp4rag.errors import InputError

CLASSIFIERS: dict[str, Callable[[], Any]] = {"svm": svm}


def classifier_named(name: str) -> Any:
    """A new, unfitted classifier; raises `InputError` that lists the known ones."""
    if name not in CLASSIFIERS:
        raise InputError(f"unknown classifier '{name}'; choose from {', '.join(CLASSIFIERS)}")
    return CLASSIFIERS[name]()
