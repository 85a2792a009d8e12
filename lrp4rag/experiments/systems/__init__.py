"""Detectors to compare with that use no relevance: each is a function from rows to contenders."""
