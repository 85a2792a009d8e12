"""RAGulator (arXiv 2411.03920): is a sentence of the response out of its context?"""
