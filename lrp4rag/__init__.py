"""White-box hallucination detection for retrieval-augmented generation, by relevance propagation."""

__version__ = "0.1.0"
