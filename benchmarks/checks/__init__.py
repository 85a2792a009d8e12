"""What checks find on cases that were written before them, and what they cost."""
