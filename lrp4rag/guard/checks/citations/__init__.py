"""`Citations`: whether each citation of a response was retrieved, and says what it is cited for."""

from lrp4rag.guard.checks.citations.check import Citations as Citations
