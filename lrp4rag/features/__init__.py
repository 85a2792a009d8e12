"""Features: named numbers of each token and response, made of relevance and signals.

Each is defined in docs/features.md, whose tables are those of the registries here (a test compares them).
"""
