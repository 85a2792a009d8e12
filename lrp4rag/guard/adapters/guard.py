"""`Guard`: a detector and a policy, for an application that runs both itself."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from lrp4rag.example import Example
from lrp4rag.guard.policy import Assessment, Policy, assess, judge, load_policy
from lrp4rag.guard.policy.assessment import assess_unjudged
from lrp4rag.judge import Detector, ExplainedVerdict
from lrp4rag.report.words import contradiction_words, unlike_words, verdict_words
from lrp4rag.source import Source
from lrp4rag.util.errors import InputError
from lrp4rag.util.text import one_line

EXTENSION = "lrp4rag"
"""Under which name the libraries' messages have the decision."""
LONGEST = 200
"""Characters of a suspect span that are quoted."""
NOTHING = "there is nothing to judge"
PROMPT_BYTES = 2**29
"""Of prompts that stay read between the sentences of answers that are written at a time."""

_LOADING = threading.Lock()


@dataclass(frozen=True, slots=True, eq=False)
class Guarded:
    """The decision on an answer: `shown` is what its reader gets.

    `probability` is that it is hallucinated, None where it could not be judged, and `why` says why not;
    `sentences` are its sentences as JSON values; `verdict` is there for an answer that was judged whole.
    """

    shown: str
    assessment: Assessment
    probability: float | None = None
    sentences: tuple[Mapping[str, Any], ...] = ()
    verdict: ExplainedVerdict | None = None
    why: str | None = None

    @property
    def grounded(self) -> bool | None:
        """The detector's verdict; None without one."""
        verdict = self.verdict
        return None if verdict is None or verdict.hallucinated is None else not verdict.hallucinated

    @property
    def words(self) -> str:
        """The verdict, a line for each suspect span, and what passages have in its place. It quotes the
        answer."""
        if self.verdict is None:
            return f"No verdict: {self.why}"
        told = [verdict_words(self.verdict), *unlike_words(self.verdict)]
        for span in self.verdict.spans:
            told += contradiction_words(span) or [f'"{one_line(span.text, LONGEST)}": unsupported']
        return "\n".join(told)

    def record(self) -> dict[str, Any]:
        """JSON values; passages count from 1. Of an answer that is withheld, they quote nothing."""
        told = self.assessment.redacted() | {"probability": self.probability, "why": self.why}
        return told | {"sentences": list(self.sentences)}


class Guard:
    """Judges answers and decides on them, by the bundled detector and the default policy unless others are
    given. It may be used by several threads: the reader judges one answer, or one sentence, at a time.

    The reader is loaded when it is first needed, once for all guards of the same name.
    """

    def __init__(
        self, detector: Detector | str | Path = "default", policy: Policy | str | Path | None = None
    ) -> None:
        """`detector` is bundled, a folder, or loaded; `policy` may be the path of its file. Raises
        `InputError` naming file, line and field for an invalid policy."""
        self._given = detector
        if not isinstance(policy, Policy):
            policy = load_policy(None if policy is None else Path(policy))
        self.policy = policy

    @cached_property
    def detector(self) -> Detector:
        """Open, and loaded now if it was not. Raises `InputError` for what cannot be loaded."""
        with _LOADING:
            given = self._given
            found = given if isinstance(given, Detector) else _loaded(str(given))
            if not found.is_open:
                found.__enter__()
            return found

    @property
    def lock(self) -> threading.RLock:
        """Whoever uses the detector holds it."""
        return self.detector.reader.lock

    def judge(self, question: str, passages: Sequence[str | Source], response: str) -> Guarded:
        """What is done with an answer. What cannot be judged has no verdict, and the policy says what is done
        with that. A passage without text is left out, and the others keep their numbers. Raises `InputError`
        for what is no text and an empty question."""
        require_text(question, "question")
        require_text(response, "response")
        sources = sources_of(passages)
        if not any(one.read.strip() for one in sources) or not response.strip():
            found = assess_unjudged(self.policy, question, sources)
            return Guarded(found.shown(response), found, why=NOTHING)
        example = example_of(question, sources, response)
        try:
            with self.lock:
                verdict, found = judge(self.detector, self.policy, example)
        except Exception as error:  # whatever fails is no clean verdict
            found = assess(self.policy, example, None)
            return Guarded(found.shown(response), found, why=why_not(error))
        names = ("start", "end", "status", "probability", "suspect")
        sentences = tuple({name: getattr(one, name) for name in names} for one in verdict.sentences)
        return Guarded(found.shown(response), found, verdict.probability, sentences, verdict)


def example_of(question: str, sources: tuple[Source, ...], response: str | None = None) -> Example:
    return Example(question, [one.read for one in sources], response, sources=sources)


def sources_of(passages: Sequence[str | Source]) -> tuple[Source, ...]:
    """Raises `InputError` for what is no list of texts: one text is a sequence of its letters."""
    given: Any = passages
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise InputError("give a list of texts, one for each passage", field="passages")
    sources = tuple(one if isinstance(one, Source) else Source(one) for one in given)
    for number, one in enumerate(sources):
        require_text(one.text, f"passages[{number}]")
    return sources


def require_text(given: object, field: str) -> None:
    """Raise `InputError` unless it is a text."""
    if not isinstance(given, str):
        raise InputError(f"a text is needed, not {type(given).__name__}", field=field)


def why_not(error: Exception) -> str:
    """Word why there is no verdict; only our own messages surely quote nobody."""
    return str(error) if isinstance(error, InputError) else f"failed: {type(error).__name__}"


@cache
def _loaded(name: str) -> Detector:
    return Detector.load(name, prompt_bytes=PROMPT_BYTES)
