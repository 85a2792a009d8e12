"""Tests of lrp4rag/policy."""
