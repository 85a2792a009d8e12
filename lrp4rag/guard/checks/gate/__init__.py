"""`RetrievalGate`: the choice of the retrieved passages that an answer may rest on."""

from lrp4rag.guard.checks.gate.gate import GateResult as GateResult
from lrp4rag.guard.checks.gate.gate import RetrievalGate as RetrievalGate
