"""Detectors that read relevance, likelihood and states of single tokens, which results were measured with."""
