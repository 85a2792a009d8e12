"""The audit log: an append-only, hash-chained record of every decision, with signed checkpoints."""

from lrp4rag.guard.audit.chain import Checkpoint
from lrp4rag.guard.audit.entry import Entry
from lrp4rag.guard.audit.log import AuditLog
from lrp4rag.guard.audit.verification import Problem, Verification

__all__ = ["AuditLog", "Checkpoint", "Entry", "Problem", "Verification"]
