"""How the comparer that comes with the package learned: `python -m experiments.comparer`."""
