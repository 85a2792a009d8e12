"""The red team: answers that a guardrail must stop, and harmless ones that it must let through."""

from lrp4rag.guard.redteam.cases import Case as Case
from lrp4rag.guard.redteam.cases import load_cases as load_cases
from lrp4rag.guard.redteam.targets import Answered as Answered
from lrp4rag.guard.redteam.targets import LocalTarget as LocalTarget
from lrp4rag.guard.redteam.targets import NotJudged as NotJudged
from lrp4rag.guard.redteam.targets import Result as Result
from lrp4rag.guard.redteam.targets import Target as Target
from lrp4rag.guard.redteam.targets import run as run
