"""Prompt judges: a model is asked whether the passages support the response.

Three forms. The probability of "No" by the two answers' tokens at the first place of the reply (RAGulator,
arXiv 2411.03920, appendix D); a rubric of five questions that are passed or failed, with a reason; and the
share of votes after reasoning (ChainPoll, arXiv 2310.18344). A reply that cannot be read is asked for again,
and then counted as unanswered: it is never scored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from experiments.systems.baseline import Measured, Measurement
from experiments.systems.chat import Chat
from experiments.systems.facts import Facts
from experiments.systems.resources import Resources
from experiments.systems.scoring import log_odds
from lrp4rag.example import Example
from lrp4rag.training.rows import Rows

ANSWERS = ("No", "Yes")
TRIES = 2
RETRY_TEMPERATURE = 0.7
REASON_TOKENS = 40
VOTES, VOTE_TOKENS, VOTE_TEMPERATURE = 3, 96, 0.7

CASE = "Passages:\n{passages}\n\nQuestion: {question}\n\nAnswer: {response}\n\n"
"""Passages come first: the reader reads once what responses to one source share."""
SUPPORTED = (
    "Is every statement of the answer supported by the passages above? Reply with one word, Yes or No."
)
RUBRIC = {
    "support": "Does every statement of the answer follow from the passages?",
    "contradiction": "Is the answer free of statements that contradict the passages?",
    "names and numbers": "Do all names, numbers and dates of the answer occur in the passages?",
    "question": "Does the answer reply to the question with what the passages say?",
    "outside knowledge": "Is the answer free of facts that are known from elsewhere only?",
}
RUBRIC_FORM = (
    "{question} Reply on one line with PASS (yes), FAIL (no) or UNCERTAIN, then a colon and a short reason."
)
CHAIN = (
    "Does the answer contain statements that the passages do not support? Think step by step, in two or "
    'three sentences. Then write a last line that is either "Verdict: Yes" or "Verdict: No".'
)

T = TypeVar("T")
WORTH = {"PASS": 0.0, "UNCERTAIN": 0.5, "FAIL": 1.0}
# What repeats the instruction, or names several grades or verdicts, is no answer.
_GRADE = re.compile(
    r"^\W*(PASS|FAIL|UNCERTAIN)\b[\s*]*[:.\-\u2013]+[\s*]*((?!.*\b(?:PASS|FAIL|UNCERTAIN)\b).*\w.*)",
    re.DOTALL,
)
_VERDICT = re.compile(r"(?:^|[.!?])\W*verdict\W*(yes|no)\W*$", re.IGNORECASE | re.MULTILINE)


def read_grade(reply: str) -> str | None:
    """The grade; None where the reply does not begin with a grade and a reason, which names none."""
    match = _GRADE.match(reply)
    return match[1] if match else None


def read_vote(reply: str) -> bool | None:
    """Whether the last verdict at a line's end says that something is not supported; None without one."""
    verdicts = _VERDICT.findall(reply)
    return verdicts[-1].lower() == "yes" if verdicts else None


def case_of(example: Example) -> str:
    passages = "\n\n".join(passage.strip() for passage in example.passages)
    return CASE.format(passages=passages, question=example.question, response=example.response)


def two_answers(examples: list[Example], chat: Chat) -> list[Measurement]:
    """One number: the log odds of "No" against "Yes"."""
    answers = chat.choose([case_of(example) + SUPPORTED for example in examples], ANSWERS)
    return [Measurement(np.array([log_odds(no)]), asked=1, unanswered=int(no is None)) for no in answers]


def rubric(examples: list[Example], chat: Chat) -> list[Measurement]:
    """One number: the mean worth of the answered questions, FAIL 1, UNCERTAIN 1/2 and PASS 0."""
    questions = [RUBRIC_FORM.format(question=question) for question in RUBRIC.values()]
    messages = [case_of(example) + question for example in examples for question in questions]
    replies = asked_until_read(messages, chat, read_grade)
    worth = [None if grade is None else WORTH[grade] for grade in replies]
    return [_mean(part) for part in batched(worth, len(questions))]


def chain_poll(examples: list[Example], chat: Chat) -> list[Measurement]:
    """One number: the share of votes that something is not supported."""
    messages = [case_of(example) + CHAIN for example in examples for _ in range(VOTES)]
    replies = asked_until_read(messages, chat, read_vote, VOTE_TOKENS, VOTE_TEMPERATURE)
    return [_mean(part) for part in batched(replies, VOTES)]


def asked_until_read(
    messages: list[str],
    chat: Chat,
    read: Callable[[str], T | None],
    max_tokens: int = REASON_TOKENS,
    temperature: float = 0.0,
) -> list[T | None]:
    """Read the reply to each message. A message whose reply cannot be read is asked again, not at temperature
    0, until `TRIES` are used up: then None."""
    values: list[T | None] = [None] * len(messages)
    for attempt in range(TRIES):
        unread = [k for k, value in enumerate(values) if value is None]
        if not unread:
            break
        replies = chat.replies(
            [messages[k] for k in unread],
            max_tokens=max_tokens,
            temperature=temperature if not attempt else max(temperature, RETRY_TEMPERATURE),
            seed=attempt,
        )
        for k, reply in zip(unread, replies, strict=True):
            values[k] = read(reply)
    return values


def batched(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Runs of so many, the last of what is left."""
    return (items[start : start + size] for start in range(0, len(items), size))


def _mean(replies: Sequence[float | None]) -> Measurement:
    """The mean of the replies that were read, NaN without any."""
    values = [float(value) for value in replies if value is not None]
    number = np.mean(values) if values else np.nan
    return Measurement(np.array([number]), asked=len(replies), unanswered=len(replies) - len(values))


def _judge(
    name: str,
    title: str,
    paper: str,
    number: str,
    form: Callable[[list[Example], Chat], list[Measurement]],
    words: list[str],
) -> Measured:
    """`words` say what is asked, how often, and which replies are read: kept replies depend on them."""

    def measure(rows: Rows, resources: Resources) -> list[Measurement]:
        chat = resources.chat
        settings = {"chat": chat.name, "prompts": [CASE, *words]}
        return resources.measured(name, settings, rows.examples, Measurement, lambda group: form(group, chat))

    slow = form is not two_answers
    facts = Facts(title, paper, "text", "a sigmoid", "the judge's", slow=slow, choices=("judge",))
    return Measured(facts, measure, (number,))


TWO_ANSWERS = _judge(
    "prompt-judge",
    "Prompt judge",
    "arXiv 2411.03920, appendix D",
    "log odds of No",
    two_answers,
    [SUPPORTED, *ANSWERS],
)
RUBRIC_JUDGE = _judge(
    "prompt-rubric",
    "Prompt judge, rubric",
    "",
    "questions failed",
    rubric,
    [RUBRIC_FORM, *RUBRIC.values(), f"{TRIES}, {REASON_TOKENS}, {RETRY_TEMPERATURE}", _GRADE.pattern],
)
CHAIN_POLL = _judge(
    "chainpoll",
    "ChainPoll",
    "arXiv 2310.18344",
    "share of votes",
    chain_poll,
    [CHAIN, f"{TRIES}, {VOTES}, {VOTE_TOKENS}, {VOTE_TEMPERATURE}", _VERDICT.pattern],
)
