"""Is the relevance faithful? Needle, perturbation and passage ablation, against other methods.

Run with `python -m benchmarks.faithfulness --help`; the keys of `--json` are documented in `__main__.py`.
"""
