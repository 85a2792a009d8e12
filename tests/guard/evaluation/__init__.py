"""Tests of lrp4rag/guard/evaluation."""
