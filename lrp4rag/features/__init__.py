"""Features: named numbers of each token, sentence and response, made of relevance and signals.

Each is defined in docs/features.md, which is written from the registries here.
"""
