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
"""The name under which the libraries' messages have the decision."""
LONGEST = 200
"""The most characters of a suspect span that are quoted."""
NOTHING = "there is nothing to judge"
PROMPT_BYTES = 2**29
"""Size of the prompts that stay read between the sentences of answers that are written at a time."""

_LOADING = threading.Lock()


@dataclass(frozen=True, slots=True, eq=False)
class Guarded:
    """The decision on an answer: `shown` is the text that its reader gets.

    `probability` is that it is hallucinated, None where it could not be judged, and `why` says why not;
    `sentences` are its sentences as JSON values; `verdict` is that of an answer that was judged as a whole,
    else None.
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
        """The verdict, and a line for each suspect span with what passages have in its place. They quote the
        answer."""
        if self.verdict is None:
            return f"No verdict: {self.why}"
        lines = [verdict_words(self.verdict), *unlike_words(self.verdict)]
        for span in self.verdict.spans:
            lines += contradiction_words(span) or [f'"{one_line(span.text, LONGEST)}": unsupported']
        return "\n".join(lines)

    def record(self) -> dict[str, Any]:
        """Return the decision as JSON values; passages count from 1. They do not quote a withheld answer."""
        record = self.assessment.redacted() | {"probability": self.probability, "why": self.why}
        return record | {"sentences": list(self.sentences)}


class Guard:
    """Judges answers and decides on them, by the bundled detector and the default policy unless others are
    given. It may be used by several threads: the reader judges one answer, or one sentence, at a time.

    The reader is loaded when it is first needed, once for all guards of the same name.
    """

    def __init__(
        self, detector: Detector | str | Path = "default", policy: Policy | str | Path | None = None
    ) -> None:
        """Take the name of a bundled `detector`, its folder, or a loaded one; `policy` may be the path of its
        file. Raises `InputError` naming file, line and field for an invalid policy."""
        self._detector = detector
        if not isinstance(policy, Policy):
            policy = load_policy(None if policy is None else Path(policy))
        self.policy = policy

    @cached_property
    def detector(self) -> Detector:
        """The open detector, loaded on first use. Raises `InputError` where it cannot be loaded."""
        with _LOADING:
            detector = self._detector
            if not isinstance(detector, Detector):
                detector = _loaded(str(detector))
            if not detector.is_open:
                detector.__enter__()
            return detector

    @property
    def lock(self) -> threading.RLock:
        """The lock that every user of the detector holds."""
        return self.detector.reader.lock

    def judge(self, question: str, passages: Sequence[str | Source], response: str) -> Guarded:
        """Judge an answer, and decide what is done with it. An answer that cannot be judged has no verdict,
        and the policy says what is done with it. A passage without text is left out, and the others keep
        their numbers. Raises `InputError` for anything but texts, and for an empty question."""
        require_text(question, "question")
        require_text(response, "response")
        sources = sources_of(passages)
        if not any(source.read.strip() for source in sources) or not response.strip():
            assessment = assess_unjudged(self.policy, question, sources)
            return Guarded(assessment.shown(response), assessment, why=NOTHING)
        example = Example.of_sources(question, sources, response)
        try:
            with self.lock:
                verdict, assessment = judge(self.detector, self.policy, example)
        except Exception as error:  # whatever fails is no clean verdict
            assessment = assess(self.policy, example, None)
            return Guarded(assessment.shown(response), assessment, why=why_not(error))
        names = ("start", "end", "status", "probability", "suspect")
        sentences = tuple({name: getattr(sentence, name) for name in names} for sentence in verdict.sentences)
        return Guarded(assessment.shown(response), assessment, verdict.probability, sentences, verdict)


def sources_of(passages: Sequence[str | Source]) -> tuple[Source, ...]:
    """Return passages as sources. Raises `InputError` for anything but a list of texts: a single text is a
    sequence of its letters."""
    texts: Any = passages
    if isinstance(texts, str | bytes) or not isinstance(texts, Sequence):
        raise InputError("give a list of texts, one for each passage", field="passages")
    sources = tuple(text if isinstance(text, Source) else Source(text) for text in texts)
    for number, source in enumerate(sources):
        require_text(source.text, f"passages[{number}]")
    return sources


def require_text(value: object, field: str) -> None:
    """Raise `InputError` unless a value is a text."""
    if not isinstance(value, str):
        raise InputError(f"a text is needed, not {type(value).__name__}", field=field)


def why_not(error: Exception) -> str:
    """Say why there is no verdict; only our own messages surely quote nobody."""
    return str(error) if isinstance(error, InputError) else f"failed: {type(error).__name__}"


@cache
def _loaded(name: str) -> Detector:
    return Detector.load(name, prompt_bytes=PROMPT_BYTES)
