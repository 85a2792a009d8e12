"""Checks beside the detector: citations, conflicts between passages, facts, omissions, the retrieval gate."""
