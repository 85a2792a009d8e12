"""`Detector`: from strings to a verdict. `_examine` is the way of one response: encode, read, score, judge,
gather evidence; `Judgement.verdict` then builds the verdict."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from pathlib import Path
from traceback import clear_frames
from typing import Any, Literal, Self

from lrp4rag import __version__
from lrp4rag.claims.nearest import nearest
from lrp4rag.classifiers.analysis import Analysis, pull_evidence, pull_sentences
from lrp4rag.classifiers.assessor import Assessor
from lrp4rag.classifiers.card import Card
from lrp4rag.classifiers.contradiction import computed_values
from lrp4rag.classifiers.model import Model, detector_beside
from lrp4rag.classifiers.prevalence import check_prevalence, require_enough
from lrp4rag.classifiers.verdict import (
    Assessment,
    Evidence,
    Judgement,
    Verdict,
)
from lrp4rag.classifiers.wording import View, in_plain_case
from lrp4rag.example import Example
from lrp4rag.features.contrast import Context
from lrp4rag.features.excerpt import Excerpt, LongPrompt
from lrp4rag.features.growing import Growing
from lrp4rag.features.parts import PROMPT
from lrp4rag.features.record import Record
from lrp4rag.features.replay import AnyReplay, PlainReplay, RelevanceReplay, Replay, TextReplay
from lrp4rag.lrp.attribution import attribute
from lrp4rag.lrp.composites import Composite, composite_named
from lrp4rag.lrp.families import can_pull, family_of, require_pull
from lrp4rag.lrp.flow import Flow, relevance_mode
from lrp4rag.lrp.interrupt import interruptible
from lrp4rag.lrp.memory import trim_now_and_then
from lrp4rag.lrp.relevance import Array, Relevance
from lrp4rag.reader.encoding import Encoded, Truncation, WindowError, require_truncation
from lrp4rag.reader.reader import Reader, load_reader
from lrp4rag.reader.words import NONE
from lrp4rag.report.html import html_page, html_summary
from lrp4rag.report.record import record
from lrp4rag.report.words import reasons_of, verdict_words
from lrp4rag.streaming import JudgedPiece, StreamingDetector
from lrp4rag.util.errors import InputError, LRP4RAGWarning
from lrp4rag.util.hashes import json_hash
from lrp4rag.util.types import require_kind, require_whole

Prevalence = float | Literal["estimate"]
OF_CARD = "default"
"""The reader that a detector was trained with."""
EXCERPT, NEEDED = 0.7, 0.95
"""Tokens of an excerpt, as a share of the longest prompt that is read whole; and of one that a long response
needs."""


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class ExplainedVerdict(Analysis):
    """A verdict with the analysis that it was made of. In a notebook it shows itself."""

    detector: Detector

    def __post_init__(self) -> None:
        Verdict.__post_init__(self)
        object.__setattr__(self, "reasons", reasons_of(self))

    def to_dict(self) -> dict[str, Any]:
        """Return what `lrp4rag analyse --json` prints: JSON values only, passages counted from 1."""
        return record(self)

    def to_html(self) -> str:
        """Return a self-contained page, to be written as UTF-8: the prompt shaded by what each sentence rests
        on.

        The shades are pulled now, which costs about three forward passes. A quantised reader gives none, and
        the page is without them.
        """
        return html_page(self.detector.with_rows(self), detector=self.detector.name)

    def _repr_html_(self) -> str:
        return html_summary(self)

    def __repr__(self) -> str:
        return f"<{verdict_words(self)}: {[span.text for span in self.spans]}>"


class Detector:
    """A reader, and a fitted model that judges what the reader tells of a response. Without a model there is
    evidence and no probability.

    `with detector:` holds the reader between judgements, as a server wants it; without it each call enters
    and leaves relevance mode, where it needs it, and forgets prompts. Threads may share it: the reader judges
    one response at a time, and what cannot go on beside another use of the reader is refused.
    """

    def __init__(
        self,
        model: Model | None,
        reader: Reader,
        *,
        name: str | None = None,
        composite: str | Composite | None = None,
        truncation: Truncation = "error",
        max_memory: int | None = None,
        prompt_bytes: int = 0,
    ) -> None:
        """`name` is what reports call it; `composite` defaults to the model's. `truncation` "passages" drops
        the ends of passages where a prompt exceeds the reader's window; `max_memory` (bytes) makes passes
        small enough to fit. While it is open, prompts stay read as far as they fit into `prompt_bytes`,
        beside the last one.

        Raises `InputError` for a reader without relevance rules, and where the model was trained with another
        reader, composite or comparer.
        """
        require_truncation(truncation)
        if max_memory is not None:
            require_whole(max_memory, "max_memory", 1)
        require_whole(prompt_bytes, "prompt_bytes", 0)
        self.composite = composite_named(composite or (model.card.composite if model else "attnlrp"))
        if reader.has_model:
            _ = family_of(reader.model)
        self.plain = model is not None and model.plain
        self._pulls = model is not None and PROMPT in model.needs
        if model is not None:
            read = None if self.plain else self.composite.name
            model.require(reader.identity.as_dict(), read, model.card.target)
        self.model, self.reader, self.name = model, reader, name
        self.truncation: Truncation = truncation
        self.max_memory, self.prompt_bytes = max_memory, prompt_bytes
        self._users, self._mode = 0, ExitStack()
        self._flow: Flow | None = None
        self._relevance_replay: Replay | None = None
        texts = not reader.has_model or (model is not None and model.texts)
        self.words = load_reader(NONE) if texts and reader.has_model else None
        """What cuts texts into words where they alone are judged beside a reader, None elsewhere."""
        # Two of them: with one, what is supposed would put its own prompt out.
        self.plain_replay: AnyReplay
        self.second_replay: AnyReplay
        if texts:
            self.plain_replay, self.second_replay = TextReplay(reader), TextReplay(reader)
        else:
            self.plain_replay = PlainReplay(reader, prompt_bytes)
            self.second_replay = PlainReplay(reader, prompt_bytes, beside=self.plain_replay)
        self._long: LongPrompt | None = None

    @classmethod
    def load(
        cls,
        detector: str | Path = "default",
        *,
        reader: str | Path | Reader | None = OF_CARD,
        device: str | None = None,
        dtype: str = "auto",
        truncation: Truncation = "error",
        max_memory: int | None = None,
        prompt_bytes: int = 0,
        comparer: str | Path | None = None,
    ) -> Self:
        """Return the bundled detector ("default") or one in a folder, with its reader.

        The reader is the one that it was trained with, by the name in its card, unless it is given: a hub id,
        a folder, or one that is loaded. With None, there is none: the bundled detector "text" compares texts,
        and sees less. It also judges beside any reader that the bundled detector does not know, which then
        shows what sentences rest on (`ExplainedVerdict.calibrated` is False). `device` defaults to CUDA where
        there is one; `dtype` to bfloat16 where the device is faster in it, else float32. `comparer` is a file
        of `lrp4rag calibrate`, whose model reads sentences in the place of the one in training. Raises
        `InputError` for what cannot be loaded or do not belong together.
        """
        require_kind(detector, "detector", str, Path)
        require_kind(reader, "reader", str, Path, Reader, type(None))
        name = NONE if reader is None else reader
        if name != OF_CARD:
            detector = detector_beside(detector, name if isinstance(name, Reader) else str(name))
        model = Model.load(detector, comparer, device)
        trained = model.card.reader
        if not isinstance(name, Reader):
            try:
                reader = load_reader(
                    trained["name"] if name == OF_CARD else str(name),
                    device=device,
                    dtype=model.dtype(dtype),
                    chat_template=model.framing,
                    max_memory=max_memory,
                )
            except InputError as error:
                if name == OF_CARD:
                    error.add_note(f"the detector was trained with '{trained['name']}'; give it as reader=…")
                raise
        else:
            reader = name
        return cls(
            model,
            reader,
            name=f"{detector} ({model.card.classifier})",
            truncation=truncation,
            max_memory=max_memory,
            prompt_bytes=prompt_bytes,
        )

    @property
    def card(self) -> Card:
        """What it was trained with and on, and how well it does."""
        return self._fitted.card

    @property
    def _fitted(self) -> Model:
        if self.model is None:
            raise InputError("this needs a detector that was trained")
        return self.model

    @property
    def pulls(self) -> bool:
        """Whether relevance can be pulled through its reader: there is one, and it gives derivatives."""
        return self.reader.has_model and can_pull(self.reader.model)

    @property
    def versions(self) -> dict[str, str]:
        """What decisions name: the package's version, and hashes of the detector and of the reader."""
        replaced = self._fitted.replacement
        return {
            **({} if replaced is None else {"comparer": replaced.digest[:16]}),
            "package": __version__,
            "detector": json_hash(self.card.model_dump(mode="json"))[:16],
            "reader": self.reader.identity.digest,
        }

    @property
    def most_read(self) -> tuple[float, float]:
        """Tokens and passages of the longest prompts that are read whole: those that were learned from."""
        domain = {} if self.model is None else self.model.card.domain
        tokens, passages = (domain.get(name) for name in ("prompt tokens", "passages"))
        return tokens.high if tokens else math.inf, passages.high if passages else math.inf

    def at(self, point: str | float) -> Self:
        """Return it at an operating point of its card ("high-precision", say), or at a false-positive
        rate."""
        return self._with(self._fitted.at(point))

    def at_prevalence(self, prevalence: float) -> Self:
        """Return it where that proportion (0 to 1) of responses is hallucinated: probabilities and the
        threshold shift, and the same responses are flagged. `judge_many` can estimate it from unlabelled
        responses."""
        return self._with(self._fitted.at_prevalence(prevalence))

    def _with(self, model: Model) -> Self:
        return type(self)(
            model,
            self.reader,
            name=self.name,
            composite=self.composite,
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

        `prevalence` is the proportion (0 to 1) of hallucinated responses where they come from, and "estimate"
        estimates it from their own probabilities: probabilities and the threshold shift, and the same
        responses are flagged. Raises `InputError` naming the first example that cannot be judged, for a
        prevalence that the detector cannot shift to, and for too few responses to estimate it from.
        """
        if isinstance(examples, str | Example) or not isinstance(examples, Iterable):
            raise InputError("give a list of Examples", field="examples")
        rows = list(examples)
        for number, example in enumerate[object](rows):
            if not isinstance(example, Example):
                kind = type(example).__name__
                raise InputError(f"an Example is needed, not {kind}", field=f"examples[{number}]")
        self._check_prevalence(prevalence, len(rows))
        for number, example in enumerate(rows):
            if example.response is None:
                raise InputError("there is no response to judge", field=f"examples[{number}].response")
        verdicts = list[ExplainedVerdict]()
        for number, verdict in enumerate(self.judge_each(rows, prevalence=prevalence, evidence=evidence)):
            if isinstance(verdict, Exception):
                if len(rows) > 1 and isinstance(verdict, InputError):
                    verdict.add_note(f"this is example {number} of {len(rows)} (counted from 0)")
                raise verdict
            verdicts.append(verdict)
        return verdicts

    def judge_each(
        self, examples: Sequence[Example], *, prevalence: Prevalence | None = None, **options: Any
    ) -> Generator[ExplainedVerdict | Exception, None, None]:
        """Yield the verdict on each example in their order, as soon as it is there, or the error that stopped
        it; `options` are those of `examine`, and `prevalence` is as for `judge_many`.

        Examples are read grouped by prompt, so that each prompt is read once. The reader is held until the
        iterator has ended, or is closed.
        """
        self._check_prevalence(prevalence, len(examples))
        model = self.model
        if model is not None and prevalence is not None and prevalence != "estimate":
            model = model.at_prevalence(prevalence)
        with self.reader.lock, self:
            examined = self._examine_each(examples, model, **options)
            if model is not None and prevalence == "estimate":
                examined = iter(_at_estimated_prevalence(model, list(examined)))
            for result in examined:
                yield result if isinstance(result, Exception) else result.verdict()

    def _examine_each(
        self, examples: Sequence[Example], model: Model | None, **options: Any
    ) -> Iterator[_Examined | Exception]:
        order, done = iter(_grouped_by_prompt(examples)), dict[int, _Examined | Exception]()
        prompt: Prompt | None = None
        for turn in range(len(examples)):
            while turn not in done:
                example = examples[number := next(order)]
                try:
                    prompt = (prompt and prompt.of(example)) or Prompt(self, example, self.truncation)
                    done[number] = self._examine(prompt, example.response, model, **options)
                except Exception as error:
                    clear_frames(error.__traceback__)  # they would keep what memory ran out for
                    done[number] = error
            yield done.pop(turn)

    def _check_prevalence(self, prevalence: object, responses: int) -> None:
        """Refuse what cannot be shifted to, before the expensive part."""
        if prevalence is None:
            return
        _ = self._fitted.assumed_prevalence
        if prevalence == "estimate":
            require_enough(responses)
        elif not isinstance(prevalence, bool) and isinstance(prevalence, Real):
            check_prevalence(float(prevalence))
        else:
            raise InputError(f"give a number or 'estimate', not {prevalence!r}", field="prevalence")

    def analyse(self, example: Example, **options: Any) -> ExplainedVerdict:
        """Judge an example whose response is generated first where there is none; `options` are those of
        `examine`."""
        return self.examine(Prompt(self, example, self.truncation), example.response, **options)

    def examine(self, prompt: Prompt, response: str | None, **options: Any) -> ExplainedVerdict:
        """Judge a response to a prompt and say what it rests on.

        With `evidence`, each sentence has the one of the passages that is nearest, and relevance of the
        passages is pulled for suspect sentences and contradicted values, where the detector itself reads
        none; without `reasons`, the verdict says nothing of features. `rows` adds relevance of the whole
        prompt and one pulled cotangent for each sentence. Without a response the reader writes one of
        `max_new_tokens`; `seconds` are those of steps before, which the verdict lists too. Raises
        `InputError` for what the reader cannot read.
        """
        with self.reader.lock, self:
            return self._examine(prompt, response, self.model, **options).verdict()

    def _examine(
        self,
        prompt: Prompt,
        response: str | None,
        model: Model | None,
        *,
        evidence: bool = True,
        reasons: bool = True,
        rows: bool = False,
        growing: Growing | None = None,
        max_new_tokens: int = 256,
        seconds: dict[str, float] | None = None,
    ) -> _Examined:
        example, seconds, generated = prompt.example, dict(seconds or {}), response is None
        if response is None and not self.reader.has_model:
            raise InputError("there is no response, and no reader that could write one", field="response")
        rows = rows and self.reader.has_model
        if rows or self._pulls:
            require_pull(self.reader.model)  # before the expensive part
        with self._turn():
            if response is None:
                response, view, encoded = self._generate(prompt, max_new_tokens, seconds)
            else:
                text = in_plain_case(response, [example.question, *example.passages])
                view = prompt.view(text, growing=growing is not None)
                encoded = view.encode(text)
            with _timed(seconds, "read" if self.plain else "push"):
                record = self._read(encoded, keep=rows, growing=growing or Growing())
                record = replace(record, generator=None if generated else example.generator)
                record = record if model is None else model.record_of(record)
            with _timed(seconds, "classify"):
                if model is None:
                    judgement = Judgement.of(encoded, Assessment(), None, relevance=record.relevance)
                else:
                    assessor = Assessor(view, record, model, self.plain_replay, self.second_replay)
                    judgement = model.judgement(record, assessor.assess())
                replayed, excerpt = prompt.replayed(view, encoded) if growing is None else (None, None)
                judgement = replace(judgement, response=response, replayed=replayed)
                moved = model.reasons(record, judgement) if model is not None and reasons else ()
            shades = dict[str, Array | Relevance | None]()
            if rows:
                judgement, shades = self._rows(judgement, seconds)
            gathered = Evidence(reasons=moved)
            if evidence:
                gathered = self._gather(gathered, judgement, record, prompt, view, seconds)
        shown = replayed or encoded
        details = {
            "example": example if example.response == response else example.with_response(response),
            "encoded": shown if shown.response == response else replace(shown, response=response),
            "reader": record.reader,
            "relevance": record.relevance,
            "generated": generated,
            "seconds": seconds,
            "composite": self.composite.name,
            "target": "response" if model is None else model.card.target,
            "detector": self,
            "prevalence": None if model is None else model.prevalence,
            "context": record.prompt and prompt.context(view, record),
            "excerpt": excerpt,
            "read": None if view.excerpt is None else view.excerpt.read,
            "comparer": None if model is None or model.replacement is None else model.replacement.published,
            "calibrated": self.words is None,
            **shades,
        }
        trim_now_and_then()
        return _Examined(judgement, gathered, details)

    def _generate(
        self, prompt: Prompt, max_new_tokens: int, seconds: dict[str, float]
    ) -> tuple[str, View, Encoded]:
        """Let the reader write a response: its text, and how it is read."""
        with _timed(seconds, "generate"):
            encoded = self.reader.generate(
                prompt.example, max_new_tokens=max_new_tokens, truncation=prompt.truncation
            )
        response = encoded.response
        view = prompt.view(response)
        if view.excerpt is not None or self.words is not None:
            encoded = view.encode(response)
        return response, view, encoded

    def _read(self, encoded: Encoded, *, keep: bool, growing: Growing | None = None) -> Record:
        if self.plain:
            return self.plain_replay(encoded, growing=growing)
        if self._relevance_replay is None:
            if self.model is None:
                self._relevance_replay = RelevanceReplay(self.reader, self.flow)
            else:
                self._relevance_replay = self.model.replay(self.reader, self.flow)
        return self._relevance_replay(encoded, keep=keep)

    def _gather(
        self,
        evidence: Evidence,
        judgement: Judgement,
        record: Record,
        prompt: Prompt,
        view: View,
        seconds: dict[str, float],
    ) -> Evidence:
        """Add what a verdict shows beside the judgement: nearest sentences, values that follow, relevance."""
        context = prompt.context(view, record)
        texts = [judgement.response[start:end] for start, end in judgement.spans]
        values = computed_values(record, judgement.response, prompt.example.question)
        evidence = replace(
            evidence,
            nearest=[nearest(context.index, context.passages, text) for text in texts],
            computed=view.computed(values),
        )
        if not judgement.decides or record.relevance is not None or not self.pulls:
            return evidence
        if judgement.replayed is None:
            return evidence
        with _timed(seconds, "pull evidence"):
            by_sentence, contrastive = pull_evidence(self.flow, judgement, self.reader.tokenizer)
        return replace(evidence, by_sentence=by_sentence, contrastive=contrastive)

    def _rows(
        self, judgement: Judgement, seconds: dict[str, float]
    ) -> tuple[Judgement, dict[str, Array | Relevance | None]]:
        """Return the judgement with relevance of every part of the prompt, and what shades the prompt."""
        encoded, relevance = judgement.replayed, judgement.relevance
        if encoded is None:
            return judgement, {}
        if relevance is None or relevance.by_segment is None:
            with _timed(seconds, "push"):
                relevance = attribute(self.reader, encoded, segments=True, flow=self.flow, keep=True)
            judgement = replace(judgement, relevance=relevance)
        with _timed(seconds, "pull sentences"):
            sentence_rows = pull_sentences(self.flow, encoded, judgement.spans)
        return judgement, {"relevance": relevance, "sentence_rows": sentence_rows}

    def with_rows(self, verdict: ExplainedVerdict) -> ExplainedVerdict:
        """Return the verdict with what the page shades the prompt by (`sentence_rows`), where the reader can
        be pulled through."""
        if verdict.sentence_rows is not None or not self.pulls or verdict.judgement.replayed is None:
            return verdict
        seconds = dict(verdict.seconds)
        with self.reader.lock, self, self._turn():
            judgement, shades = self._rows(verdict.judgement, seconds)
        names = (
            *("example", "encoded", "reader", "generated", "composite", "target"),
            *("context", "excerpt", "read", "comparer", "calibrated", "prevalence", "detector"),
        )
        details = {name: getattr(verdict, name) for name in names}
        details |= {"seconds": seconds} | shades
        return _Examined(judgement, verdict.evidence, details).verdict()

    def prompt(self, example: Example) -> Prompt:
        """Return an example's question and passages, encoded once for all responses to them; the detector
        must be open (`with detector:`)."""
        if not self.is_open:
            raise InputError("open the detector first: with detector: …")
        return Prompt(self, example, self.truncation)

    def reading(
        self, question: str, passages: Sequence[str], *, generator: str | None = None, language: str = "en"
    ) -> StreamingDetector:
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

    def reading_of(self, example: Example, *, language: str = "en") -> StreamingDetector:
        """Judge a response to an `Example`, which has none yet, while it is written; see `reading`."""
        prompt = self.prompt(example)
        if not self.plain:
            raise InputError("only a detector of plain passes can read along; the bundled one does")
        return StreamingDetector(prompt, language=language)

    def answer(
        self, example: Example, follow: Callable[[JudgedPiece], None], *, max_new_tokens: int = 256
    ) -> str:
        """Let the reader itself answer, and call with each sentence, judged when it ends; return the
        answer."""
        with self.reader.lock, self:
            reading = self.reading_of(replace(example, response=None, labels=None))

            def judge(text: str) -> None:
                for piece in reading.feed(text):
                    follow(piece)

            self.reader.generate(
                reading.example, max_new_tokens=max_new_tokens, truncation=self.truncation, follow=judge
            )
            for piece in reading.end():
                follow(piece)
            return reading.text

    def read_prompt(self, encoded: Encoded, growing: Growing | None = None) -> None:
        """Read a prompt now, where the detector reads plain passes: what is judged next goes on from it."""
        if self.plain:
            with self._turn():
                self.plain_replay.prompt(encoded, growing)

    def long_prompt(self, example: Example, encoded: Encoded) -> LongPrompt:
        """Return the index of a prompt that is read in excerpts, made once for responses that follow each
        other; `encoded` is the prompt whole."""
        long = self._long
        if long is None or _prompt_key(long.example) != _prompt_key(example):
            self._long = long = LongPrompt(example, encoded)
        return long

    def interruptible(self, check: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `check` before each layer of each pass of the reader, within; what it raises ends what the
        detector does, which can be asked anew."""
        return interruptible(self.reader.model, check) if self.reader.has_model else nullcontext()

    @property
    def is_open(self) -> bool:
        """Whether it holds its reader."""
        return self._users > 0

    @property
    def flow(self) -> Flow:
        """The flow of relevance mode, which the reader is in from now on."""
        if self._flow is None:
            mode = relevance_mode(self.reader.model, self.composite, max_memory=self.max_memory)
            self._flow = self._mode.enter_context(mode)
        return self._flow

    def __enter__(self) -> Self:
        with self.reader.lock:
            if not self._users and not self.plain:
                _ = self.flow  # what cannot be patched is refused now
            self._users += 1
        return self

    def __exit__(self, *_: object) -> None:
        with self.reader.lock:
            self._users -= 1
            if not self._users:
                self._leave()
                self.plain_replay.forget()
                self.second_replay.forget()
                if self.model is not None and self.model.entailment is not None:
                    self.model.entailment.forget()
                self._long = None

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Let one thread read at a time. After it, the reader of a detector of plain passes is as it was."""
        with self.reader.lock:
            try:
                yield
            finally:
                if self.plain:
                    self._leave()

    def _leave(self) -> None:
        """Leave relevance mode."""
        self._mode.close()
        self._flow, self._relevance_replay = None, None


def analyse(
    example: Example,
    reader: Reader,
    detector: Model | None,
    *,
    composite: str | Composite | None = None,
    max_memory: int | None = None,
    truncation: Truncation = "error",
    **options: Any,
) -> Analysis:
    """Judge one example by a reader and a fitted detector (None: evidence only); see `Detector.examine` for
    `options`."""
    judge = Detector(detector, reader, composite=composite, max_memory=max_memory, truncation=truncation)
    with reader.lock:
        return judge.analyse(example, **options)


class Prompt:
    """The question and passages of an example, for all responses to them.

    What a detector of plain passes learned from is short: a prompt that is longer, has more passages, or
    leaves no room for a response in the reader's window, is read in excerpts (see `features.excerpt`). Where
    texts alone are judged, they are judged whole, and a reader beside them reads an excerpt for evidence.
    """

    def __init__(self, detector: Detector, example: Example, truncation: Truncation) -> None:
        """Raises `InputError` for what the reader cannot read."""
        self.detector, self.example, self.truncation = detector, example, truncation
        self._words: View | None = None
        if detector.words is not None:  # what is read for evidence alone refuses nothing
            truncation, self._words = "passages", View(detector.words, example, truncation)
        self._truncation: Truncation = truncation
        self._full = View(detector.reader, example, truncation)
        self._last: tuple[str, View] | None = None
        self._growing = Growing()

    def of(self, example: Example) -> Prompt | None:
        """Return it for another response's example, without encoding anything anew; None where that has
        another question or other passages."""
        if _prompt_key(self.example) != _prompt_key(example):
            return None
        prompt = copy(self)
        prompt.example = example
        return prompt

    def read(self) -> None:
        """Read it now; else it is read with the first response. Raises `InputError` for one that leaves no
        room for a response."""
        self.detector.read_prompt(self.view(growing=True).fitted(), self._growing)

    def judge(self, response: str) -> ExplainedVerdict:
        """Return the verdict on a response that is still growing, without evidence and reasons."""
        return self.detector.examine(self, response, evidence=False, reasons=False, growing=self._growing)

    def view(self, response: str = "", *, growing: bool = False) -> View:
        """Return what a response is judged by. While it is `growing`, that stays the same as long as it has
        what its new sentences cannot be judged without."""
        return self._words or self._read_view(response, growing=growing)

    def replayed(self, view: View, encoded: Encoded) -> tuple[Encoded | None, Excerpt | None]:
        """Return a response, which was judged as `encoded` by a `view`, as the reader reads it for evidence,
        None where it has no room for it; and the excerpt of a long prompt."""
        if self._words is None:
            return encoded, view.excerpt
        view = self._read_view(encoded.response)
        try:
            return view.encode(encoded.response), view.excerpt
        except WindowError:
            return None, None

    def context(self, view: View, record: Record) -> Context | LongPrompt:
        """Return all passages that a response is compared with, where it was read with a part of them."""
        return record.context if view.excerpt is None else self._long

    def _read_view(self, response: str, *, growing: bool = False) -> View:
        """Return what the reader reads of the prompt for a response."""
        if not self.detector.plain or not self._is_long(response):
            return self._full
        if not growing:
            return self._excerpt(response)
        before, view = self._last or ("", self._excerpt(""))
        excerpt = view.excerpt if response.startswith(before) else None
        if excerpt is None or not self._long.suffices(excerpt, response, since=len(before)):
            view = self._excerpt(response)
        self._last = response, view
        return view

    def _is_long(self, response: str) -> bool:
        tokens, passages = self.detector.most_read
        length, window = len(self._full.prompt.prompt_ids), self.detector.reader.window
        if length > tokens or sum(map(bool, map(str.strip, self.example.passages))) > passages:
            return True
        return window is not None and length + self._tokens_in(response) > window

    def _excerpt(self, response: str) -> View:
        tokens, passages = self.detector.most_read
        window = self.detector.reader.window
        room = math.inf if window is None else window - max(self._tokens_in(response), 1)
        if room < 1:  # of no prompt; encoding says so
            return self._full
        most = min(tokens if window is None else min(tokens, window), room / NEEDED)
        excerpt = self._long.excerpt(response, tokens=EXCERPT * most, passages=passages, most=NEEDED * most)
        return View(self.detector.reader, excerpt.example, self._truncation, excerpt)

    @cached_property
    def _long(self) -> LongPrompt:
        return self.detector.long_prompt(self.example, self._full.prompt)

    def _tokens_in(self, response: str) -> int:
        return len(self._full.prompt.with_response(response, self.detector.reader.tokenizer).response_ids)


@dataclass(frozen=True, slots=True, eq=False)
class _Examined:
    """All that an explained verdict is built of."""

    judgement: Judgement
    evidence: Evidence
    details: dict[str, Any]

    def verdict(self) -> ExplainedVerdict:
        basis = {"judgement": self.judgement, "evidence": self.evidence}
        return self.judgement.verdict(self.evidence, ExplainedVerdict, **basis, **self.details)


def _prompt_key(example: Example) -> tuple[object, ...]:
    """Return what examples of one prompt have in common."""
    return example.prompt, tuple(example.spans), example.question, tuple(example.passages)


def _grouped_by_prompt(examples: Sequence[Example]) -> list[int]:
    """Number the examples: those of one prompt one after the other, and the prompt seen first is first."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for number, example in enumerate(examples):
        groups.setdefault(_prompt_key(example), []).append(number)
    return [number for group in groups.values() for number in group]


def _at_estimated_prevalence(
    model: Model, examined: Sequence[_Examined | Exception]
) -> list[_Examined | Exception]:
    """Judge at the prevalence that the responses tell by their probabilities; errors are left out of it."""
    judged = [result for result in examined if isinstance(result, _Examined)]
    shifted, judgements = model.at_estimated_prevalence([result.judgement for result in judged])
    results = iter(
        replace(result, judgement=judgement, details=result.details | {"prevalence": shifted.prevalence})
        for result, judgement in zip(judged, judgements, strict=True)
    )
    return [next(results) if isinstance(result, _Examined) else result for result in examined]


@contextmanager
def _timed(seconds: dict[str, float], what: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    seconds[what] = time.perf_counter() - started
