"""Tests of lrp4rag/guard/policy."""
