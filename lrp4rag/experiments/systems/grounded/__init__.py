"""Grounded in Context (arXiv 2504.15771): claims of a response, each read with what it retrieves."""
