"""What is done with an answer, from served to withheld, and what its reader is told."""

from lrp4rag.guard.policy.answer import GuardedAnswer as GuardedAnswer
from lrp4rag.guard.policy.assess import Assessment as Assessment
from lrp4rag.guard.policy.assess import assess as assess
from lrp4rag.guard.policy.assess import judge as judge
from lrp4rag.guard.policy.decide import Decided as Decided
from lrp4rag.guard.policy.decide import Measures as Measures
from lrp4rag.guard.policy.decide import decide as decide
from lrp4rag.guard.policy.policy import ACTIONS as ACTIONS
from lrp4rag.guard.policy.policy import WITHHELD as WITHHELD
from lrp4rag.guard.policy.policy import Action as Action
from lrp4rag.guard.policy.policy import Policy as Policy
from lrp4rag.guard.policy.policy import Reason as Reason
from lrp4rag.guard.policy.policy import load_policy as load_policy
