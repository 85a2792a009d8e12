"""How the comparer that comes with the package learned: `python -m lrp4rag.training.comparer`."""
