"""`Detector`: from strings to a verdict, in three lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from lrp4rag.classifiers.analysis import Analyser, Analysis, analysing
from lrp4rag.classifiers.card import Card
from lrp4rag.classifiers.detector import FittedDetector
from lrp4rag.classifiers.verdict import Verdict
from lrp4rag.errors import InputError
from lrp4rag.example import Example
from lrp4rag.lrp.families import can_pull
from lrp4rag.reader.encoding import Truncation
from lrp4rag.reader.reader import Reader, load_reader
from lrp4rag.report.html import html_page
from lrp4rag.report.record import record
from lrp4rag.report.summary import html_summary
from lrp4rag.report.words import verdict_words


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExplainedVerdict(Verdict):
    """A verdict with the analysis that it was made of. In a notebook it shows itself."""

    analysis: Analysis = field(kw_only=True)
    detector: Detector = field(kw_only=True)

    def to_dict(self) -> dict[str, Any]:
        """What `lrp4rag analyse --json` prints: JSON values only, passages counted from 1."""
        return record(self.analysis)

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


class Detector:
    """A fitted detector together with the reader whose internals it reads.

    `with detector:` holds the reader in relevance mode between judgements, as a server wants it; without it
    each call enters and leaves that mode. One instance judges one response at a time.
    """

    def __init__(
        self,
        fitted: FittedDetector,
        reader: Reader,
        *,
        name: str | None = None,
        truncation: Truncation = "error",
        max_memory: int | None = None,
    ) -> None:
        """`name` is what reports call it; `truncation` "passages" drops the ends of passages where a prompt
        exceeds the reader's window; `max_memory` (bytes) makes passes small enough to fit.

        Raises `InputError` where the detector was trained with another reader.
        """
        card = fitted.card
        fitted.require(reader.identity.as_dict(), card.composite, card.target)
        self.fitted, self.reader, self.name = fitted, reader, name
        self.truncation: Truncation = truncation
        self.max_memory = max_memory
        self._held: ExitStack | None = None
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
    ) -> Self:
        """A bundled detector ("default", "fast") or one in a folder, with its reader.

        The reader is the one that it was trained with, by the name in its card, unless it is given: a hub
        id, a folder, or one that is loaded. `device` defaults to CUDA where there is one. Raises
        `InputError` for what cannot be loaded or do not belong together.
        """
        fitted = FittedDetector.load(detector)
        trained = fitted.card.reader
        if not isinstance(reader, Reader):
            try:
                reader = load_reader(
                    reader or trained["name"],
                    device=device,
                    dtype=dtype,
                    chat_template=trained["chat_template"],
                )
            except InputError as error:
                if reader is None:
                    error.add_note(f"the detector was trained with '{trained['name']}'; give it as reader=…")
                raise
        name = f"{detector} ({fitted.card.classifier})"
        return cls(fitted, reader, name=name, truncation=truncation, max_memory=max_memory)

    @property
    def card(self) -> Card:
        """What it was trained with and on, and how well it does."""
        return self.fitted.card

    def at(self, point: str | float) -> Self:
        """The same at an operating point of its card ("high-precision", say), or at a false-positive rate."""
        return type(self)(
            self.fitted.at(point),
            self.reader,
            name=self.name,
            truncation=self.truncation,
            max_memory=self.max_memory,
        )

    def at_prevalence(self, prevalence: float) -> Self:
        """The same where that part (0 to 1) of responses is hallucinated: probabilities and the threshold
        shift, and the same responses are flagged. `FittedDetector.estimated_prevalence` tells it from the
        probabilities of unlabelled responses."""
        return type(self)(
            self.fitted.at_prevalence(prevalence),
            self.reader,
            name=self.name,
            truncation=self.truncation,
            max_memory=self.max_memory,
        )

    def judge(
        self,
        question: str | Example,
        passages: Sequence[str] | None = None,
        response: str | None = None,
    ) -> ExplainedVerdict:
        """Judge one response: the question, the retrieved passages and the response, or an `Example`.

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
        return self.judge_many([example])[0]

    def judge_many(self, examples: Iterable[Example]) -> list[ExplainedVerdict]:
        """Judge responses, in their order. A prompt that several share is read once.

        Raises `InputError` naming the first example that cannot be judged.
        """
        given = list(examples)
        for k, example in enumerate(given):
            if example.response is None:
                raise InputError("there is no response to judge", field=f"examples[{k}].response")
        found: dict[int, ExplainedVerdict] = {}
        with self._open() as analyser:
            for k in sorted(range(len(given)), key=lambda k: (given[k].prompt, k)):
                try:
                    analysis = analyser(given[k], truncation=self.truncation)
                except InputError as error:
                    if len(given) > 1:
                        error.add_note(f"this is example {k} of {len(given)} (counted from 0)")
                    raise
                parts = {one.name: getattr(analysis.verdict, one.name) for one in fields(Verdict)}
                found[k] = ExplainedVerdict(**parts, analysis=analysis, detector=self)
        return [found[k] for k in range(len(given))]

    def with_rows(self, analysis: Analysis, *, tokens: bool = False) -> Analysis:
        """The analysis with what the page shades the prompt by (`sentence_rows`, `token_rows`), where the
        reader can be pulled through."""
        if not can_pull(self.reader.model):
            return analysis
        with self._open() as analyser:
            return analyser.with_rows(analysis, tokens=tokens)

    def __enter__(self) -> Self:
        self._held = ExitStack()
        self._analyser = self._held.enter_context(self._analysing())
        return self

    def __exit__(self, *_: object) -> None:
        self._analyser = None
        if self._held is not None:
            self._held.close()

    def _analysing(self) -> Any:
        return analysing(self.reader, self.fitted, max_memory=self.max_memory)

    @contextmanager
    def _open(self) -> Iterator[Analyser]:
        if self._analyser is not None:
            yield self._analyser
        else:
            with self._analysing() as analyser:
                yield analyser
