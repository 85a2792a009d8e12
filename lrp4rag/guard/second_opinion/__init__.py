"""A second opinion on an answer: a model is asked five questions about it, after it was decided on."""

from lrp4rag.guard.second_opinion.kappa import Agreement, agreement
from lrp4rag.guard.second_opinion.llm_judge import QUESTIONS, Answer, Failure, LLMJudge, Opinion
from lrp4rag.guard.second_opinion.running import SecondOpinions

__all__ = [
    "QUESTIONS",
    "Agreement",
    "Answer",
    "Failure",
    "LLMJudge",
    "Opinion",
    "SecondOpinions",
    "agreement",
]
