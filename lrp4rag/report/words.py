"""What every report says in the same words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lrp4rag.text import visible

if TYPE_CHECKING:
    from lrp4rag.classifiers.verdict import Sentence, SuspectSpan, Verdict
    from lrp4rag.reader.encoding import Encoded


def verdict_words(verdict: Verdict) -> str:
    """The verdict as a phrase, with the probability of hallucination where there is one."""
    if verdict.probability is None or verdict.threshold is None:
        return "Evidence only, no detector"
    if verdict.abstained:
        return f"No verdict: unlike the training data (probability would be {verdict.probability:.2f})"
    if verdict.hallucinated:
        return f"Likely hallucinated, probability {verdict.probability:.2f}"
    words = f"Likely grounded, probability of hallucination {verdict.probability:.2f}"
    count = len(verdict.spans)
    # The verdict is on the whole response: a mostly grounded one can still hold an invention.
    return f"{words}, but {count} suspect {'span' if count == 1 else 'spans'}" if count else words


def signed(value: float) -> str:
    """The value with its sign and 3 significant digits."""
    return f"{value:+.3g}".replace("-", "\u2212")


def rests_on(sentence: Sentence) -> str:
    """The passage that a sentence rests on most, with its relevance in logits."""
    if not sentence.by_passage:
        return "not attributed"
    if sentence.passage is None:
        return "no passage"
    return f"passage {sentence.passage + 1} ({sentence.by_passage[sentence.passage]:+.2f})"


def drawn_on(span: SuspectSpan, *, attributed: bool) -> str:
    """The passage that a suspect span draws on most; that it does, does not make it true."""
    if not attributed:
        return "not attributed"
    return "no passage" if span.passage is None else f"passage {span.passage + 1}"


def unlike_words(verdict: Verdict) -> list[str]:
    """In which ways the example is unlike the training data, a line each."""
    return [
        f"{'unlike the training data' if one.decides else 'caution'}: {one.words}" for one in verdict.unlike
    ]


def reader_words(reader: dict[str, Any]) -> str:
    """A reader's identity as a phrase, whatever of it is known."""
    words = str(reader.get("name", "unknown reader"))
    if "chat_template" in reader:
        words += ", chat template" if reader["chat_template"] else ", raw prompt"
    if reader.get("dtype"):
        words += f", {reader['dtype']}"
    return f"{words}, {reader['digest']}" if reader.get("digest") else words


def time_words(seconds: dict[str, float]) -> str:
    """Where time went, in the order in which it went."""
    if not seconds:
        return "not measured"
    parts = ", ".join(f"{visible(what)} {spent:.1f} s" for what, spent in seconds.items())
    return f"{parts}; {sum(seconds.values()):.1f} s in all"


def token_words(encoded: Encoded) -> str:
    """The lengths, and what truncation removed."""
    words = f"{len(encoded.prompt_ids)} prompt and {len(encoded.response_ids)} response tokens"
    return f"{words}, {encoded.dropped} dropped by truncation" if encoded.dropped else words
