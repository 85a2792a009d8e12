"""What the guardrail promises, measured: a command for each promise, and the page of what they found."""

import lrp4rag as lrp4rag  # before torch, as in a server of its own: it tells OpenMP how to wait
