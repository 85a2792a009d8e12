"""Conflicts between passages: the same statement with another value."""

from lrp4rag.guard.checks.conflicts.conflicts import Conflicts as Conflicts
from lrp4rag.guard.checks.conflicts.conflicts import prompt_note as prompt_note
