"""What each part of the bundled detector adds: it is cross-validated with one part left out at a time."""
