"""Tests of lrp4rag/checks/conflicts."""
