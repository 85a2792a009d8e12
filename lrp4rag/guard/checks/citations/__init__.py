"""Whether what a response cites was retrieved, and says what is cited for."""

from lrp4rag.guard.checks.citations.check import Citations as Citations
