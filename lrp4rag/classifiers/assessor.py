"""`Assessor`: a response assessed, and single sentences of it again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from lrp4rag.claims.answer import Compared
from lrp4rag.claims.borrowed import Borrowed, Subjects
from lrp4rag.claims.counterclaims import CounterClaim, counter_claims
from lrp4rag.claims.derivation import Derivation, derivations, restatements
from lrp4rag.claims.refusals import Refusal, missing_words, refusal_in
from lrp4rag.classifiers.countered import with_counter_claim
from lrp4rag.classifiers.model import Model
from lrp4rag.classifiers.refused import with_refusals
from lrp4rag.classifiers.unborrowed import without_borrowed
from lrp4rag.classifiers.verdict import Assessment, with_sentences
from lrp4rag.classifiers.wording import Located, View, own_case
from lrp4rag.features.record import Record
from lrp4rag.features.replay import AnyReplay
from lrp4rag.reader.encoding import Encoded, WindowError

Countered = tuple[CounterClaim, float | None]
"""A counter-claim, and its probability where it needs one."""


class Assessor:
    """Assesses a response that was read as `record` by a `view` of its prompt, and single sentences of it
    again where another prompt, or another sentence, tells more of them."""

    def __init__(
        self, view: View, record: Record, model: Model, replay: AnyReplay, second: AnyReplay
    ) -> None:
        """`replay` reads the response with another sentence, `second` after another prompt; they keep what
        they read last."""
        self._view, self._record, self._model = view, record, model
        self._replay, self._second = replay, second
        self._encoded, self._threshold = record.encoded, model.card.threshold

    def assess(self) -> Assessment:
        """Return what the model says of the response; one that does not read plain passes is asked once."""
        assessment = self._model.assess(self._record)
        if self._model.plain and assessment.claims is not None:
            assessment = self._supposed(assessment)
            assessment = self._derived(assessment)
            assessment = self._refused(assessment)
            assessment = self._unborrowed(assessment)
            assessment = self._countered(assessment)
        return replace(
            assessment,
            contradictions=self._view.original(assessment.contradictions),
            differences=self._view.original(assessment.differences),
        )

    def _supposed(self, assessment: Assessment) -> Assessment:
        """Judge sentences that repeat what only the question supposes after the question as the passages
        would have it, where that is worse."""
        supposing = self._view.supposing(self._encoded)
        if supposing is None:
            return assessment
        encoded, sentences = supposing
        after = self._assess_after("supposing", encoded)
        return with_sentences(assessment, after, sentences, self._encoded, worse=True)

    def _derived(self, assessment: Assessment) -> Assessment:
        """Judge suspect sentences after passages that also say what these derive from them, where they are
        less suspect."""
        context, response = self._record.context, self._encoded.response
        derived: dict[int, list[Derivation]] = {}
        for number in self._stated(assessment, suspect=True):
            sentence = self._encoded.sentences[number]
            values = [
                *derivations(response, sentence, self._view.example.question, context.index),
                *restatements(response, sentence, context.index),
                *own_case(response, sentence, self._view.example.question, context.index),
            ]
            if values:
                derived[number] = values
        if not derived:
            return assessment
        try:
            encoded = self._view.saying(chain.from_iterable(derived.values()), response)
        except WindowError:
            return assessment
        after = self._assess_after("derived", encoded)
        lengths = [len(passage) for passage in context.passages]

        def of_passages(items: Iterable[Located]) -> tuple[Located, ...]:
            """Return what lies in the passages themselves, and not in what was added to them."""
            return tuple(each for each in items if each.passage_end <= lengths[each.passage])

        after = replace(
            after,
            contradictions=of_passages(after.contradictions),
            differences=of_passages(after.differences),
        )
        return with_sentences(assessment, after, [*derived], self._encoded, worse=False)

    def _refused(self, assessment: Assessment) -> Assessment:
        """Judge sentences that say that something is missing by whether the passages have it."""
        of_sentences = self._refusals()
        stated = ((number, of_sentences[number]) for number in self._stated(assessment))
        refusals = {number: refusal for number, refusal in stated if refusal is not None}
        if not refusals:
            return assessment
        return with_refusals(assessment, refusals, self._threshold, self._record.context.passages)

    def _refusals(self) -> Sequence[Refusal | None]:
        """Return what each sentence says to be missing, where that can be told."""
        context, encoded = self._record.context, self._encoded

        def further(done: Sequence[Refusal | None]) -> Iterator[Refusal | None]:
            for start, end in encoded.sentences[len(done) :]:
                yield refusal_in(context.compared, encoded.response, start, end)

        return self._record.of_each("refusals", further)

    def _unborrowed(self, assessment: Assessment) -> Assessment:
        """Judge sentences that borrow from passages about something else without these passages, where that
        is worse."""
        context, encoded = self._record.context, self._encoded

        def further(done: Sequence[Borrowed | None]) -> Iterator[Borrowed | None]:
            subjects = Subjects(self._view.example.question, context.index)
            spans = encoded.sentences[len(done) :]
            for span, borrowed in zip(spans, subjects.borrowed(encoded.response, spans), strict=True):
                yield None if borrowed is not None and missing_words(encoded.response, *span) else borrowed

        of_sentences, sources = self._record.of_each("borrowed", further), set[int]()
        groups: dict[frozenset[int], dict[int, Borrowed]] = {}
        for number in self._stated(assessment, suspect=False):
            if (borrowed := of_sentences[number]) is not None:
                sources.add(borrowed.passage)  # what follows a sentence changes nothing of it
                groups.setdefault(frozenset(sources), {})[number] = borrowed
        for passages, group in groups.items():
            after = self._assess_after("unborrowed", self._view.without(passages, encoded.response))
            assessment = without_borrowed(
                assessment, after, group, encoded, self._threshold, context.passages
            )
        return assessment

    def _countered(self, assessment: Assessment) -> Assessment:
        """Compare sentences that are not suspect, and do not rightly say that something is missing, with
        their counter-claims."""
        record, response, passages = self._record, self._encoded.response, self._record.context.compared
        claims = assessment.claims
        if record.growing is None or claims is None:
            return assessment
        refusals = self._refusals()
        stated = {
            number
            for number in self._stated(assessment, suspect=False)
            if (refusal := refusals[number]) is None or refusal.outcome == "there"
        }

        def further(done: Sequence[tuple[Countered, ...]]) -> Iterator[tuple[Countered, ...]]:
            """Yield the counter-claims of further sentences, each with its probability where it needs one."""
            for number, sentence in enumerate(record.compared[len(done) :], start=len(done)):
                counters = counter_claims(response, passages, sentence) if number in stated else ()
                yield tuple(
                    (counter, None if counter.is_said else self._probability(sentence, counter))
                    for counter in counters
                )

        for number, countered in enumerate(record.of_each("counter-claims", further)):
            texts = response, self._encoded.sentences[number], passages.texts
            own = claims.probabilities[number]
            for counter, probability in countered:
                assessment = with_counter_claim(
                    assessment, number, own, counter, probability, self._threshold, *texts
                )
        return assessment

    def _stated(self, assessment: Assessment, *, suspect: bool | None = None) -> list[int]:
        """Number the sentences that state something; of these the `suspect` ones, or the others."""
        claims = assessment.claims
        if claims is None:
            return []
        stated = [number for number, stating in enumerate(claims.stating) if stating != "nothing"]
        if suspect is None:
            return stated
        return [number for number in stated if (claims.probabilities[number] >= self._threshold) == suspect]

    def _assess_after(self, prompt: str, encoded: Encoded) -> Assessment:
        """Return what the model says of the response after another prompt, which is named."""
        growing = self._record.growing and self._record.growing.after(prompt)
        return self._assess_read(self._second(encoded, growing=growing))

    def _probability(self, sentence: Compared, counter: CounterClaim) -> float | None:
        """Return that of a counter-claim in the place of its sentence; None where it is no sentence, or where
        the reader's window has no room for it."""
        try:
            encoded = self._view.encode(self._encoded.response[: sentence.start] + counter.words)
        except WindowError:
            return None
        growing = self._record.growing and self._record.growing.copied()
        after = self._assess_read(self._replay(encoded, growing=growing))
        if after.claims is None or encoded.sentences[-1][0] != sentence.start:
            return None
        return float(after.claims.probabilities[-1])

    def _assess_read(self, record: Record) -> Assessment:
        return self._model.assess(replace(record, generator=self._record.generator))
