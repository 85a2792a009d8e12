"""The claim of each citation: its sentence, or its clause where a sentence has several citations."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lrp4rag.claims.clauses import Span
from lrp4rag.claims.words import content_words
from lrp4rag.guard.checks.citations.citation import Citation
from lrp4rag.guard.checks.citations.context import is_announced, speaks
from lrp4rag.util.sentences import sentences_in

_CITING = content_words(
    """according see source sources reference references cited per passage passages section article
    clause document documents state states says say set stated require requires explain explains
    described note cf under provide provided information based following pursuant also both
    respectively laid mention discuss describe emphasize suggest pertain specific additional
    general detail details instructions outline offer"""
)
_ONLY_JOINS = re.compile(r"[\s,;&.]*(?:and|or)?[\s,;&]*")


def claim_words(text: str) -> frozenset[str]:
    """Return the content words of a claim, without those that only cite."""
    return content_words(text) - _CITING


def claims(text: str, citations: Sequence[Citation]) -> list[Span]:
    """Return for each citation the characters that it is cited for, which may have citations among them.
    Where its sentence has no claim, they are the sentence before, or after a colon the next; without such a
    sentence, an empty span."""

    spans: list[Span] = []
    sentences = _sentences(text, citations)
    done = 0
    for number, (start, end) in enumerate(sentences):
        inside = []
        while done < len(citations) and citations[done].start < end:
            inside.append(citations[done])
            done += 1
        for span in _in_sentence(text, start, end, inside):
            if span[0] < span[1]:
                spans.append(span)
            elif number and not text[start:end].rstrip().endswith(":"):
                spans.append(sentences[number - 1])
            else:
                spans.append(sentences[number + 1] if number + 1 < len(sentences) else (start, start))
    spans += [(0, 0)] * (len(citations) - len(spans))
    return spans


def without(text: str, span: Span, citations: Sequence[Citation]) -> str:
    """Return the characters of a span without the citations among them, which must be in order."""
    start, end = span
    texts, at = [], start
    for citation in citations:
        if citation.end > start and citation.start < end:
            texts.append(text[at : max(citation.start, at)])
            at = max(citation.end, at)
    return " ".join([*texts, text[at:end]])


def _sentences(text: str, citations: Sequence[Citation]) -> list[Span]:
    """Return the sentences, with no border in a citation; marks after a full stop belong to the sentence
    before."""
    spans: list[Span] = []
    at = 0
    for start, end in sentences_in(text):
        while at < len(citations) and citations[at].end <= start:
            at += 1
        if spans and at < len(citations) and citations[at].start < start:
            spans[-1] = (spans[-1][0], end)
            continue
        mark, begin = at, start
        while (
            spans
            and mark < len(citations)
            and citations[mark].start <= begin + 1
            and not citations[mark].inline
            and "\n" not in text[spans[-1][1] : begin]
            and not speaks(text, citations[mark].end)
        ):
            begin = citations[mark].end
            spans[-1] = (spans[-1][0], begin)
            begin += len(text[begin:end]) - len(text[begin:end].lstrip(" .,;"))
            mark += 1
        if begin < end:
            spans.append((begin, end))
    return spans


def _in_sentence(text: str, start: int, end: int, inside: Sequence[Citation]) -> list[Span]:
    """Return the claim of each citation inside a sentence."""
    groups: list[list[Citation]] = []
    for citation in inside:
        last = groups[-1][-1].end if groups else 0
        if groups and _ONLY_JOINS.fullmatch(text, last, max(citation.start, last)):
            groups[-1].append(citation)
        else:
            groups.append([citation])
    if len(groups) == 1:
        if inside[0].inline:  # "under the policy it is 16 weeks; it was 12 before"
            start, end = _between_semicolons(text, start, end, inside[0])
        span = (start, end) if claim_words(without(text, (start, end), inside)) else (start, start)
        return [span] * len(inside)
    borders = [start, *(border for group in groups for border in (group[0].start, group[-1].end)), end]
    segments = list(zip(borders[::2], borders[1::2], strict=True))
    spans: list[Span] = []
    taken = -1  # the last segment that is a claim
    for number, group in enumerate(groups):
        before, after = segments[number], segments[number + 1]
        has_before, has_after = (bool(claim_words(text[slice(*segment)])) for segment in (before, after))
        is_announced_here = is_announced(text, group[0].start) and taken < number
        is_last = number == len(groups) - 1
        if has_before and (
            not group[0].inline or is_announced_here or (is_last and not has_after and taken < number)
        ):
            span, taken = before, max(taken, number)
        elif has_after:
            span, taken = after, number + 1
        else:
            span = spans[-1] if spans else (start, end)
        if is_last and span == before and has_after:
            span = (before[0], end)
        spans += [span] * len(group)
    return spans


def _between_semicolons(text: str, start: int, end: int, citation: Citation) -> Span:
    """Return the characters of a sentence between the semicolons around a citation."""
    before, after = text.rfind(";", start, citation.start), text.find(";", citation.end, end)
    return (start if before < 0 else before + 1), (end if after < 0 else after)
