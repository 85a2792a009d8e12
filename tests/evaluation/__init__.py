"""Tests of lrp4rag/evaluation."""
