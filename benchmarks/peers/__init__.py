"""lrp4rag against the libraries people would use instead: time, memory, and agreement of the numbers.

Run with `python -m benchmarks.peers.run --help`; README.md says what every peer does, and the keys of
`--json`.
"""
