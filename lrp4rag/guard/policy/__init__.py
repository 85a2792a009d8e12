"""Decide what happens to an answer, from serving to withholding, and the words that its reader gets."""

from lrp4rag.guard.policy.answer import GuardedAnswer as GuardedAnswer
from lrp4rag.guard.policy.assessment import Assessment as Assessment
from lrp4rag.guard.policy.assessment import assess as assess
from lrp4rag.guard.policy.assessment import judge as judge
from lrp4rag.guard.policy.decision import Decided as Decided
from lrp4rag.guard.policy.decision import Measures as Measures
from lrp4rag.guard.policy.decision import decide as decide
from lrp4rag.guard.policy.policy import ACTIONS as ACTIONS
from lrp4rag.guard.policy.policy import WITHHELD as WITHHELD
from lrp4rag.guard.policy.policy import Action as Action
from lrp4rag.guard.policy.policy import Policy as Policy
from lrp4rag.guard.policy.policy import load_policy as load_policy
from lrp4rag.guard.policy.reasons import Reason as Reason
