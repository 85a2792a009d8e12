"""What the guardrail promises, measured: a command for each promise, and the page of what they found."""
