"""Small bidirectional encoders that baselines read text with: embeddings, entailment, token classification."""
