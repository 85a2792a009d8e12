"""What an answer states, claim by claim, and which of it is grounded."""

from lrp4rag.guard.checks.facts.facts import Facts as Facts
from lrp4rag.guard.checks.facts.facts import Score as Score
from lrp4rag.guard.checks.facts.facts import fact_score as fact_score
from lrp4rag.guard.checks.facts.facts import score as score
from lrp4rag.guard.checks.facts.find import Fact as Fact
from lrp4rag.guard.checks.facts.find import facts_of as facts_of
from lrp4rag.guard.checks.facts.find import stated as stated
