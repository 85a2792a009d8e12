"""RAGulator's own evaluation (arXiv 2411.03920), of sentences: held-out pairs, agreement, speed, a stream."""
