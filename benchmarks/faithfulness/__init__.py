"""Is the relevance faithful? Run with `python -m benchmarks.faithfulness --help`."""
