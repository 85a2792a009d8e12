"""Why a verdict is what it is, in words: the features that moved it, beside what is typical."""

from __future__ import annotations

from lrp4rag.classifiers.verdict import Reason, Verdict
from lrp4rag.features.tokens import TOKEN_FEATURES

WORDS = {
    "passages": "draws {} logits of relevance from the passages",
    "question": "draws {} logits of relevance from the question",
    "template": "draws {} logits of relevance from the template",
    "leading passage": "draws {} logits of relevance from its leading passage",
    "lead": "has its leading passage {} logits ahead of the next",
    "spread": "spreads its relevance over the passages by {} (0: one passage, 1: all alike)",
    "agreement": "keeps to the leading passage of the token before at {} of its tokens",
    "negative passages": "has {} logits of relevance in passages that speak against it",
    "over the mean logit": "draws {} logits more from the passages than the average token would",
    "over the largest logit": "draws {} logits more from the passages than what the reader would have said",
    "share of the logit": "draws {} of its logit from the passages",
    "cp passages": "draws {} of its logit from the passages (cp_lrp)",
    "cp question": "draws {} of its logit from the question (cp_lrp)",
    "cp template": "draws {} of its logit from the template (cp_lrp)",
    "cp response": "draws {} of its logit from the response so far (cp_lrp)",
    "state passages": "has {} of its last hidden state from the passages",
    "state response": "has {} of its last hidden state from the response so far",
    "logit": "has a mean logit of {}",
    "log-probability": "has a mean log-probability of {} nats",
    "entropy": "leaves the reader {} nats of doubt over what could follow",
    "log rank": "has a mean log rank of {} among what could follow",
    "gain": "is {} nats a token likelier with the passages than without",
    "gain over others": "is {} nats a token likelier with its passages than with another prompt's",
    "mean lookback": "pays {} of its attention to the prompt rather than to itself",
    "position": "is {} into the response",
    "novel word": "has {} of its tokens in words that no passage has",
    "novel number": "has {} of its tokens in numbers that no passage has",
    "novel pair": "has {} of its tokens in word pairs that no passage has",
    "copied run": "is made of copied runs of {} words (log)",
    "length": "is in a response of {} tokens (log)",
}
PERCENT = {
    "agreement",
    "share of the logit",
    *(name for name in TOKEN_FEATURES if name.startswith(("cp ", "state "))),
    "mean lookback",
    "position",
    "novel word",
    "novel number",
    "novel pair",
}


def reason_words(reason: Reason, verdict: Verdict) -> str:
    """One sentence: which, what, and what faithful sentences have (their middle half)."""
    value, low, high = (number(reason.feature, one) for one in (reason.value, *reason.faithful[1:4:2]))
    told = WORDS[reason.feature].format(value)
    many = len(verdict.sentences) > 1
    which = f"sentence {reason.sentence + 1}" if many else "the response"
    return f"{which} {told}; half of faithful sentences: {low} to {high}"


def number(feature: str, value: float) -> str:
    if feature in PERCENT:
        return f"{value:.0%}".replace("-", "\u2212")
    return f"{value:.2f}".replace("-", "\u2212")
