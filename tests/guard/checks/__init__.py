"""Tests of lrp4rag/guard/checks."""
