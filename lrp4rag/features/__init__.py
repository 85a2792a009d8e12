"""Features: named numbers of each token of a response, made of plain passes (docs/features.md)."""
