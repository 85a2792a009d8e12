"""What every report says in the same words, and user text made fit to be shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lrp4rag.classifiers.verdict import Sentence, SuspectSpan, Verdict
    from lrp4rag.generator.encoding import Encoded

# Explicit marks, embeddings, overrides and isolates: they reorder the text around them.
_BIDI = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_VISIBLE: dict[int, str] = {
    **{code: chr(0x2400 + code) for code in range(0x20)},
    0x7F: "\u2421",
    **dict.fromkeys(range(0x80, 0xA0), "\ufffd"),
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),
    **dict.fromkeys(_BIDI, "\ufffd"),
    **dict.fromkeys((0x2028, 0x2029), "\n"),
    ord("\t"): " ",
    ord("\r"): " ",
}
del _VISIBLE[ord("\n")]


def visible(text: str) -> str:
    """The text with each control character replaced by one that only shows it (ESC by "␛").

    One for one, so that character offsets still hold. Line breaks stay.
    """
    return text.translate(_VISIBLE)


def one_line(text: str, limit: int | None = None) -> str:
    """`visible` text on one line, cut off with an ellipsis after `limit` characters."""
    line = " ".join(visible(text).split())
    return line if limit is None or len(line) <= limit else line[: limit - 1].rstrip() + "…"


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
