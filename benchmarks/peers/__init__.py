"""lrp4rag against the libraries people would use instead: time, memory, and agreement (README.md)."""
