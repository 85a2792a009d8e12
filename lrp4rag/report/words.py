"""Word verdicts, reasons, sources of relevance, times and lengths, the same in every report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lrp4rag.classifiers.text_model import ALARM_WORDS
from lrp4rag.classifiers.verdict import FLAGGED, STATING, Difference, Reason
from lrp4rag.reader.words import NONE
from lrp4rag.report.numbers import reading, reading_range, signed
from lrp4rag.util.text import one_line, visible

if TYPE_CHECKING:
    from lrp4rag.claims.arithmetic import Computed
    from lrp4rag.classifiers.analysis import Analysis
    from lrp4rag.classifiers.verdict import Contradiction, Sentence, SuspectSpan, Verdict
    from lrp4rag.features.excerpt import Excerpt
    from lrp4rag.reader.encoding import Encoded
    from lrp4rag.reader.published import Published

REASONS = {
    "log-probability": "mean log-probability {} nats",
    "entropy": "mean next-token entropy {} nats",
    "log rank": "mean log rank of its tokens {}",
    "best other": "likeliest other token ahead by {} nats",
    "best other in a passage": "likeliest other token of the passages ahead by {} nats",
    "others in passages": "probability of other tokens of the passages {}",
    "in no passage": "tokens in words that no passage has: {}",
    "in the place": "tokens in words of the best matching sentence of the passages: {}",
    "near the place": "tokens in words of that sentence and its neighbours: {}",
    "in the place's passage": "tokens in words of the best matching passage: {}",
    "asked": "tokens in words of the question: {}",
    "rarity": "rarity of its words in the passages {}",
    "similarity": "share of its content words in the best matching sentence of the passages {}",
    "similarity elsewhere": "share of its content words in the best sentence of another passage {}",
    "asked there": "how much of the question the best matching passage has, against the others: {}",
    "new after the word before": "tokens in word pairs that no passage has: {}",
    "new before the next word": "tokens whose word no passage has before the next one: {}",
    "new after two words": "tokens in three words in a row that no passage has: {}",
    "new between words": "tokens between words that no passage has around it: {}",
    "novel scope": "words such as all, always or only that the best matching sentence does not have: {}",
    "limits missing": "limits (if, only, except ...) of the best matching sentence that it does not have: {}",
    "limits added": "limits (if, only, except ...) that the best matching sentence does not have: {}",
    "away from home": "how much better it matches another passage than the rest of the response does: {}",
    "value": "tokens in numbers, dates, names and words with an opposite: {}",
    "support": "how well the surroundings of its values match those of equal values in the passages: {}",
    "rival": "how well they match those of other values: {}",
    "rival's lead": "how much better other values of the passages match its surroundings: {}",
    "unsupported": "tokens in values that no passage has: {}",
    "margin": "the passages' other values likelier by {} nats",
    "value margin": "the passages' other values themselves likelier by {} nats",
    "share": "share of its values among the passages' alternatives {}",
    "opposite polarity": "how well places that say the opposite match: {}",
    "polarity's lead": "how much better places that say the opposite match: {}",
    "doubt of the word": "doubt of its words, read beside the passages: {} in log odds",
    "doubt of the sentence": "doubt that the passages support it: {} in log odds",
    "contradicted": "that they contradict it rather than support it: {} in log odds",
}
"""The words for the mean over a sentence's tokens, by feature."""
VALUE_LENGTH = 60
"""The most characters of a value that are shown."""
TRAIN = "lrp4rag train --reader MODEL --out FOLDER"
"""The command that gives a reader a detector of its own."""
_PERCENT = {
    *("others in passages", "asked", "share", "value", "unsupported"),
    *(name for name in REASONS if name.startswith(("novel ", "in ", "near ", "new "))),
}


def verdict_words(verdict: Verdict) -> str:
    """Word the verdict, with the probability of hallucination where there is one."""
    if verdict.threshold is None:
        return "Evidence only, no detector"
    if verdict.states_nothing or verdict.probability is None:
        return "No verdict: it states nothing that a passage could support"
    if verdict.abstained:
        return f"No verdict: unlike the training data (probability would be {verdict.probability:.2f})"
    if not verdict.hallucinated:
        return f"Likely grounded, probability of hallucination {verdict.probability:.2f}"
    counts = Counter(sentence.status for sentence in verdict.sentences)
    stating = sum(counts[status] for status in STATING)
    counted = [f"{counts[status]} {status}" for status in FLAGGED if counts[status]]
    words = f"Likely hallucinated, probability {verdict.probability:.2f}"
    sentences = f"{stating} sentence{'' if stating == 1 else 's'}"
    return f"{words} (of {sentences} {', '.join(counted)})" if counted else words


def reasons_of(verdict: Verdict) -> tuple[Reason, ...]:
    """Return the verdict's reasons with their words: contradicted values, other differences, computed values,
    then features."""
    findings = [
        ("contradiction", contradiction.start, _instead(contradiction))
        for contradiction in verdict.contradictions
    ]
    findings += [
        ("difference", difference.start, difference_words(difference)) for difference in verdict.differences
    ]
    findings += [("computed", value.start, computed_words(value)) for value in verdict.computed]
    reasons = [
        Reason(kind, None, number, words=f"{_which(number, verdict)}: {words}")
        for number, sentence in enumerate(verdict.sentences)
        for kind, start, words in findings
        if sentence.start <= start < sentence.end and (sentence.suspect or kind != "computed")
    ]
    features = (replace(reason, words=reason_words(reason, verdict)) for reason in verdict.reasons)
    return (*reasons, *(reason for reason in features if reason.feature not in WORDED))


WORDED = ("contradiction", "difference", "computed")
"""Reasons that are no features."""


def difference_words(difference: Difference) -> str:
    """Word what a passage has against a sentence: `leaves out "only for members" (passage 2)`."""
    passage = f"passage {difference.passage + 1}"
    words = f'"{one_line(difference.words, 2 * VALUE_LENGTH)}"'
    if difference.kind == "left out":
        return f"leaves out {words} ({passage})"
    if difference.kind == "answered":
        return f"says that this is missing, and {passage} may have it: {words}"
    return f'{passage} says this of "{one_line(difference.subject, VALUE_LENGTH)}": {words}'


def computed_words(value: Computed) -> str:
    """Word how a value follows from those of a passage: `"42" = 24 + 18, computed from passage 1`."""
    words, sign = one_line(value.words, 2 * VALUE_LENGTH), "=" if value.kind == "computed" else "\u2248"
    text = one_line(value.text, VALUE_LENGTH)
    return f'"{text}" {sign} {words}, {value.kind} from passage {value.passage + 1}'


def _which(number: int, verdict: Verdict) -> str:
    return f"sentence {number + 1}" if len(verdict.sentences) > 1 else "the response"


def reason_words(reason: Reason, verdict: Verdict) -> str:
    """Word a reason: sentence, feature and value, and the middle half of faithful sentences."""
    if reason.words or reason.value is None:
        bare = bool(reason.words) and reason.words == ALARM_WORDS.get(reason.feature)  # else it is worded
        return f"{_which(reason.sentence, verdict)}: {reason.words}" if bare else reason.words
    percent = reason.feature in _PERCENT
    phrase = REASONS.get(reason.feature, f"{reason.feature} {{}}")
    words = phrase.format(reading(reason.value, percent=percent))
    usual = reading_range(reason.faithful[1], reason.faithful[3], percent=percent)
    which = _which(reason.sentence, verdict)
    return f"{which}: {words} (middle half of faithful sentences: {usual})"


def main_reasons(verdict: Verdict, generator: str | None) -> list[str]:
    """Word the reasons and what the known generator adds, a line each."""
    lines = [reason.words for reason in reasons_of(verdict)]
    if verdict.shift:
        often = "more" if verdict.shift > 0 else "less"
        name = one_line(generator or "the generator", 60)
        lines.append(
            f"{name} hallucinates {often} often than other generators: {verdict.shift:+.2f} log odds"
        )
    return lines


def rests_on(sentence: Sentence) -> str:
    """Name the passage that a sentence rests on most, with its relevance in logits."""
    if not sentence.by_passage:
        return "not attributed"
    if sentence.passage is None:
        return "no passage"
    return f"passage {sentence.passage + 1} ({sentence.by_passage[sentence.passage]:+.2f})"


def contradiction_words(span: SuspectSpan) -> list[str]:
    """Word what passages have in place of the values of a suspect span, a line each: `"18 weeks": passage 2
    has "16 weeks" (characters 40..48, margin 3.1 nats, relevance +0.4)`."""
    return list(dict.fromkeys(map(_contradiction_words, span.contradictions)))


def _contradiction_words(contradiction: Contradiction) -> str:
    figures = [f"characters {contradiction.passage_start}..{contradiction.passage_end}"]
    if contradiction.margin is not None:
        figures.append(f"margin {signed(contradiction.margin).removeprefix('+')} nats")
    if contradiction.relevance is not None:
        figures.append(f"relevance {signed(contradiction.relevance)}")
    return f"{_instead(contradiction)} ({', '.join(figures)})"


def _instead(contradiction: Contradiction) -> str:
    instead = f'passage {contradiction.passage + 1} has "{one_line(contradiction.instead, VALUE_LENGTH)}"'
    return f'"{one_line(contradiction.text, VALUE_LENGTH)}": {instead}'


def figure_words(verdict: Verdict) -> str:
    """Explain the figures in `contradiction_words`; "" where there are none."""
    contradictions = [contradiction for span in verdict.spans for contradiction in span.contradictions]
    margin = "Margin: how much likelier the reader finds the passage's words than the response's, in nats."
    relevance = "Relevance: how much more the passage speaks for its words than for those, in logits."
    attributed = any(contradiction.relevance is not None for contradiction in contradictions)
    scored = any(contradiction.margin is not None for contradiction in contradictions)
    return f"{margin} {relevance}" if attributed else margin if scored else ""


def comparer_words(comparer: Published) -> str:
    """Say which published model read the sentences."""
    return (
        f"sentences are compared by {comparer}, and the detector was trained with another comparer: the "
        "figures of its card are not of this one"
    )


def uncalibrated_words(reader: str = "this reader") -> str:
    """Say that verdicts are of texts alone, and how a reader gets a detector of its own."""
    return f"not calibrated for {reader}: texts alone are compared; for a detector of its own: {TRAIN}"


def cautions(analysis: Analysis) -> list[str]:
    """Say what is unlike the training data, that the reader is, and which other comparer read the
    sentences."""
    reader = f"the reader {one_line(str(analysis.reader.get('name')), 100)}"
    return [
        *unlike_words(analysis),
        *([] if analysis.calibrated else [uncalibrated_words(reader)]),
        *([] if analysis.comparer is None else [comparer_words(analysis.comparer)]),
    ]


def prevalence_words(prevalence: float) -> str:
    """Word the share of hallucinated responses that probabilities are for."""
    return f"probabilities are for a prevalence of {prevalence:.3g}"


def unlike_words(verdict: Verdict) -> list[str]:
    """Word how the example is out of the training distribution, a line each."""
    return [
        f"{'unlike the training data' if deviation.decides else 'caution'}: {deviation.words}"
        for deviation in verdict.unlike
    ]


def reader_words(reader: dict[str, Any]) -> str:
    """Word a reader's identity, as far as it is known."""
    if reader.get("name") == NONE:
        return "none: texts are compared"
    words = str(reader.get("name", "unknown reader"))
    if "chat_template" in reader:
        words += ", chat template" if reader["chat_template"] else ", raw prompt"
    if reader.get("dtype"):
        words += f", {reader['dtype']}"
    if reader.get("quantised"):
        words += f", quantised: {visible(str(reader['quantised']))}"
    return f"{words}, {reader['digest']}" if reader.get("digest") else words


def time_words(seconds: dict[str, float]) -> str:
    """Word the times, in their order."""
    if not seconds:
        return "not measured"
    times = ", ".join(f"{visible(stage)} {took:.1f} s" for stage, took in seconds.items())
    return f"{times}; total {sum(seconds.values()):.1f} s"


def token_words(encoded: Encoded, excerpt: Excerpt | None = None) -> str:
    """Word the lengths, what truncation removed, and the passages of which an `excerpt` has sentences."""
    words = f"{len(encoded.prompt_ids)} prompt and {len(encoded.response_ids)} response tokens"
    if encoded.dropped:
        words += f", {encoded.dropped} dropped by truncation"
    return words if excerpt is None else f"{words}, {read_words(excerpt.read)}"


def read_words(read: Sequence[int]) -> str:
    """Name the passages (counted from 0) of which sentences were read: "read of passages 3 and 14"."""
    *first, last = [str(passage + 1) for passage in read]
    numbers = f"{', '.join(first)} and {last}" if first else last
    return f"read of passage{'s' if first else ''} {numbers}"
