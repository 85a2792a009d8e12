"""Tests of lrp4rag/checks/gate."""
