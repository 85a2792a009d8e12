"""How many faults of each kind are flagged where few right answers are: raw scores, and a page of them."""
