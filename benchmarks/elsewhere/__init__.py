"""What the detector is worth on data that no detector learned from."""
