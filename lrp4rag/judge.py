"""`Detector`: from strings to a verdict, in three lines."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, fields, replace
from numbers import Real
from pathlib import Path
from typing import Any, Literal, Self

from lrp4rag import __version__
from lrp4rag.classifiers.analysis import Analyser, Analysis, analysing
from lrp4rag.classifiers.card import Card
from lrp4rag.classifiers.detector import (
    FittedDetector,
    at_estimated_prevalence,
    verdicts_at_prevalence,
)
from lrp4rag.classifiers.prevalence import check_prevalence, require_enough
from lrp4rag.classifiers.verdict import Verdict
from lrp4rag.example import Example, Span
from lrp4rag.lrp.families import can_pull, family_of
from lrp4rag.lrp.interrupt import interruptible
from lrp4rag.reader.encoding import Truncation, require_truncation
from lrp4rag.reader.reader import Reader, load_reader
from lrp4rag.report.html import html_page
from lrp4rag.report.record import record
from lrp4rag.report.summary import html_summary
from lrp4rag.report.words import reasons_of, verdict_words
from lrp4rag.streaming import JudgedPiece, ReadingAlong
from lrp4rag.util.errors import InputError, LRP4RAGWarning
from lrp4rag.util.hashes import json_hash
from lrp4rag.util.types import require_kind, require_whole

Prevalence = float | Literal["estimate"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExplainedVerdict(Verdict):
    """A verdict with the analysis that it was made of. In a notebook it shows itself.

    `prevalence` is the one that probability and threshold are for, None where it is that of training.
    """

    analysis: Analysis = field(kw_only=True)
    detector: Detector = field(kw_only=True)
    prevalence: float | None = field(kw_only=True, default=None)

    def to_dict(self) -> dict[str, Any]:
        """What `lrp4rag analyse --json` prints: JSON values only, passages counted from 1."""
        return record(self.analysis, prevalence=self.prevalence)

    def to_html(self, *, tokens: bool = False) -> str:
        """A self-contained page, to be written as UTF-8: the prompt shaded by what each sentence rests on.

        The shades are pulled now, which costs about three forward passes; with `tokens`, also those of each
        token. A quantised reader gives none, and the page is without them.
        """
        return html_page(self.detector.with_rows(self.analysis, tokens=tokens), detector=self.detector.name)

    def _repr_html_(self) -> str:
        return html_summary(self.analysis)

    def __repr__(self) -> str:
        return f"<{verdict_words(self)}: {[span.text for span in self.spans]}>"


def grouped_by_prompt(examples: Sequence[Example]) -> list[int]:
    """The examples' numbers: those of one prompt one after the other, and the prompt seen first is first. An
    `Analyser` reads a prompt once where it is visited so."""
    groups: dict[tuple[str, tuple[Span, ...]], list[int]] = {}
    for number, example in enumerate(examples):
        groups.setdefault((example.prompt, tuple(example.spans)), []).append(number)
    return [number for group in groups.values() for number in group]


class Detector:
    """A fitted detector together with the reader whose internals it reads.

    `with detector:` holds the reader in relevance mode between judgements, as a server wants it; without it
    each call enters and leaves that mode. Threads may share it: the reader judges one response at a time, and
    what cannot go on beside another use of the reader is refused.
    """

    def __init__(
        self,
        fitted: FittedDetector,
        reader: Reader,
        *,
        name: str | None = None,
        truncation: Truncation = "error",
        max_memory: int | None = None,
        prompt_bytes: int = 0,
    ) -> None:
        """`name` is what reports call it; `truncation` "passages" drops the ends of passages where a prompt
        exceeds the reader's window; `max_memory` (bytes) makes passes small enough to fit. While it is open,
        prompts stay read as far as they fit into `prompt_bytes`, beside the last one.

        Raises `InputError` for a reader without relevance rules, and where the detector was trained with
        another one.
        """
        require_truncation(truncation)
        if max_memory is not None:
            require_whole(max_memory, "max_memory", 1)
        require_whole(prompt_bytes, "prompt_bytes", 0)
        card = fitted.card
        _ = family_of(reader.model)
        fitted.require(reader.identity.as_dict(), card.composite, card.target)
        self.fitted, self.reader, self.name = fitted, reader, name
        self.truncation: Truncation = truncation
        self.max_memory, self.prompt_bytes = max_memory, prompt_bytes
        self._held, self._users = ExitStack(), 0
        self._analyser: Analyser | None = None

    @classmethod
    def load(
        cls,
        detector: str | Path = "default",
        *,
        reader: str | Reader | None = None,
        device: str | None = None,
        dtype: str = "float32",
        truncation: Truncation = "error",
        max_memory: int | None = None,
        prompt_bytes: int = 0,
    ) -> Self:
        """The bundled detector ("default") or one in a folder, with its reader.

        The reader is the one that it was trained with, by the name in its card, unless it is given: a hub
        id, a folder, or one that is loaded. `device` defaults to CUDA where there is one. Raises
        `InputError` for what cannot be loaded or do not belong together.
        """
        require_kind(detector, "detector", str, Path)
        require_kind(reader, "reader", str, Path, Reader, type(None))
        fitted = FittedDetector.load(detector)
        trained = fitted.card.reader
        if not isinstance(reader, Reader):
            try:
                reader = load_reader(
                    reader or trained["name"],
                    device=device,
                    dtype=dtype,
                    chat_template=trained["chat_template"],
                    max_memory=max_memory,
                )
            except InputError as error:
                if reader is None:
                    error.add_note(f"the detector was trained with '{trained['name']}'; give it as reader=…")
                raise
        name = f"{detector} ({fitted.card.classifier})"
        return cls(
            fitted,
            reader,
            name=name,
            truncation=truncation,
            max_memory=max_memory,
            prompt_bytes=prompt_bytes,
        )

    @property
    def card(self) -> Card:
        """What it was trained with and on, and how well it does."""
        return self.fitted.card

    @property
    def versions(self) -> dict[str, str]:
        """What decisions name: the package's version, and hashes of the detector and of its reader."""
        card = self.card
        return {
            "package": __version__,
            "detector": json_hash(card.model_dump(mode="json"))[:16],
            "reader": str(card.reader["digest"])[:16],
        }

    def at(self, point: str | float) -> Self:
        """The same at an operating point of its card ("high-precision", say), or at a false-positive rate."""
        return self._with(self.fitted.at(point))

    def at_prevalence(self, prevalence: float) -> Self:
        """The same where that part (0 to 1) of responses is hallucinated: probabilities and the threshold
        shift, and the same responses are flagged. `judge_many` can estimate it from unlabelled responses."""
        return self._with(self.fitted.at_prevalence(prevalence))

    def _with(self, fitted: FittedDetector) -> Self:
        return type(self)(
            fitted,
            self.reader,
            name=self.name,
            truncation=self.truncation,
            max_memory=self.max_memory,
            prompt_bytes=self.prompt_bytes,
        )

    def judge(
        self,
        question: str | Example,
        passages: Sequence[str] | None = None,
        response: str | None = None,
        *,
        evidence: bool = True,
    ) -> ExplainedVerdict:
        """Judge one response: the question, the retrieved passages and the response, or an `Example`.

        Without `evidence` no relevance is pulled for what is suspect, which is most of what a flagged one
        costs; probabilities, spans and contradictions are the same.

        Raises `InputError`, naming the argument, for what cannot be judged.
        """
        if isinstance(question, Example):
            if passages is not None or response is not None:
                raise InputError("give an Example or question, passages and response, not both")
            example = question
        else:
            if passages is None:
                raise InputError("at least one passage is needed", field="passages")
            example = Example(question, passages, response)
            for k in example.empty:
                warnings.warn(f"passage {k + 1} is empty and is left out", LRP4RAGWarning, stacklevel=2)
        return self.judge_many([example], evidence=evidence)[0]

    def judge_many(
        self, examples: Iterable[Example], *, prevalence: Prevalence | None = None, evidence: bool = True
    ) -> list[ExplainedVerdict]:
        """Judge responses, in their order. A prompt that several share is read once. `evidence` is as for
        `judge`.

        `prevalence` is the part (0 to 1) of hallucinated responses where they come from, and "estimate" tells
        it from their own probabilities: probabilities and the threshold shift, and the same responses are
        flagged. Raises `InputError` naming the first example that cannot be judged, for a prevalence that the
        detector cannot shift to, and for too few responses to estimate it from.
        """
        if isinstance(examples, str | Example) or not isinstance(examples, Iterable):
            raise InputError("give a list of Examples", field="examples")
        given = list(examples)
        for k, one in enumerate[object](given):
            if not isinstance(one, Example):
                raise InputError(f"an Example is needed, not {type(one).__name__}", field=f"examples[{k}]")
        self._check_prevalence(prevalence, len(given))
        for k, example in enumerate(given):
            if example.response is None:
                raise InputError("there is no response to judge", field=f"examples[{k}].response")
        found: dict[int, Analysis] = {}
        with self._open() as analyser:
            for k in grouped_by_prompt(given):
                try:
                    found[k] = analyser(given[k], evidence=evidence, truncation=self.truncation)
                except InputError as error:
                    if len(given) > 1:
                        error.add_note(f"this is example {k} of {len(given)} (counted from 0)")
                    raise
        return self._explained([found[k] for k in range(len(given))], prevalence)

    def _check_prevalence(self, prevalence: object, responses: int) -> None:
        """What cannot be shifted to is refused before the expensive part."""
        if prevalence is None:
            return
        _ = self.fitted.assumed_prevalence
        if prevalence == "estimate":
            require_enough(responses)
        elif not isinstance(prevalence, bool) and isinstance(prevalence, Real):
            check_prevalence(float(prevalence))
        else:
            raise InputError(f"give a number or 'estimate', not {prevalence!r}", field="prevalence")

    def _explained(
        self, analyses: Sequence[Analysis], prevalence: Prevalence | None
    ) -> list[ExplainedVerdict]:
        verdicts, used = [one.verdict for one in analyses], self.fitted.prevalence
        if prevalence == "estimate":
            verdicts, used = at_estimated_prevalence(self.fitted, verdicts)
        elif prevalence is not None:
            verdicts, used = verdicts_at_prevalence(self.fitted, verdicts, prevalence), prevalence
        return [
            ExplainedVerdict(
                **{one.name: getattr(verdict, one.name) for one in fields(Verdict)}
                | {"reasons": reasons_of(verdict)},
                analysis=replace(analysis, verdict=verdict),
                detector=self,
                prevalence=used,
            )
            for analysis, verdict in zip(analyses, verdicts, strict=True)
        ]

    def reading(
        self, question: str, passages: Sequence[str], *, generator: str | None = None, language: str = "en"
    ) -> ReadingAlong:
        """Judge a response while it is written, sentence by sentence; the detector must be open (`with
        detector:`). Raises `InputError` for a detector that reads more than plain passes.

        ```
        with detector:
            reading = detector.reading(question, passages)
            for text in stream:
                for sentence in reading.feed(text):
                    print(sentence.text, sentence.probability)
            print(*reading.end())
        ```
        """
        example = Example(question, passages, generator=generator)
        return self.reading_of(example, language=language)

    def reading_of(self, example: Example, *, language: str = "en") -> ReadingAlong:
        """The same for an `Example` without a response."""
        if self._analyser is None:
            raise InputError("open the detector first: with detector: …")
        return ReadingAlong(self._analyser, example, truncation=self.truncation, language=language)

    def answer(
        self, example: Example, follow: Callable[[JudgedPiece], None], *, max_new_tokens: int = 256
    ) -> str:
        """Let the reader itself answer, and call with each sentence, judged when it ends. The answer."""
        with self._open() as analyser:
            reading = ReadingAlong(
                analyser, replace(example, response=None, labels=None), truncation=self.truncation
            )

            def judge(text: str) -> None:
                for piece in reading.feed(text):
                    follow(piece)

            self.reader.generate(
                reading.example, max_new_tokens=max_new_tokens, truncation=self.truncation, follow=judge
            )
            for piece in reading.end():
                follow(piece)
            return reading.text

    def with_rows(self, analysis: Analysis, *, tokens: bool = False) -> Analysis:
        """The analysis with what the page shades the prompt by (`sentence_rows`, `token_rows`), where the
        reader can be pulled through."""
        if not can_pull(self.reader.model):
            return analysis
        with self._open() as analyser:
            return analyser.with_rows(analysis, tokens=tokens)

    def interruptible(self, check: Callable[[], None]) -> AbstractContextManager[None]:
        """Within, `check` is called before each layer of each pass of the reader; what it raises ends what
        the detector does, which can be asked anew."""
        return interruptible(self.reader.model, check)

    @property
    def is_open(self) -> bool:
        """Whether it holds its reader."""
        return self._analyser is not None

    def __enter__(self) -> Self:
        with self.reader.lock:
            if self._analyser is None:
                self._analyser = self._held.enter_context(self._analysing())
            self._users += 1
        return self

    def __exit__(self, *_: object) -> None:
        with self.reader.lock:
            self._users -= 1
            if not self._users:
                self._analyser = None
                self._held.close()

    def _analysing(self) -> Any:
        return analysing(self.reader, self.fitted, max_memory=self.max_memory, prompt_bytes=self.prompt_bytes)

    @contextmanager
    def _open(self) -> Iterator[Analyser]:
        with (
            self.reader.lock,
            nullcontext(self._analyser) if self._analyser else self._analysing() as analyser,
        ):
            yield analyser
