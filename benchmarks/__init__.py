"""Benchmarks: what the package costs, and whether its relevance is faithful."""
