"""Fixtures of the tests of training, which these share."""

from tests.training.conftest import detector, few_networks

__all__ = ["detector", "few_networks"]
