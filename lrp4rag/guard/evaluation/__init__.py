"""What a detector and a policy are worth on labelled examples, and whether that is less than it was."""
