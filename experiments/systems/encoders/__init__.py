"""Small bidirectional encoders that baselines read with: embeddings, entailment, marks on tokens."""
