"""What each citation is cited for: its sentence, or its clause where a sentence has several."""

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
    """Its content words, without those that only cite."""
    return content_words(text) - _CITING


def claims(text: str, citations: Sequence[Citation]) -> list[Span]:
    """For each citation the characters that it is cited for, with citations among them. Where nothing is, the
    sentence before, or the one after a colon; an empty span where that is nothing either."""
    found: list[Span] = []
    sentences = _sentences(text, citations)
    done = 0
    for number, (start, end) in enumerate(sentences):
        inside = []
        while done < len(citations) and citations[done].start < end:
            inside.append(citations[done])
            done += 1
        for span in _in_sentence(text, start, end, inside):
            if span[0] < span[1]:
                found.append(span)
            elif number and not text[start:end].rstrip().endswith(":"):
                found.append(sentences[number - 1])
            else:
                found.append(sentences[number + 1] if number + 1 < len(sentences) else (start, start))
    found += [(0, 0)] * (len(citations) - len(found))
    return found


def without(text: str, span: Span, citations: Sequence[Citation]) -> str:
    """Return the characters of a span without the citations among them, which must be in order."""
    start, end = span
    pieces, at = [], start
    for one in citations:
        if one.end > start and one.start < end:
            pieces.append(text[at : max(one.start, at)])
            at = max(one.end, at)
    return " ".join([*pieces, text[at:end]])


def _sentences(text: str, citations: Sequence[Citation]) -> list[Span]:
    """Sentences, no border within a citation; marks behind the full stop belong to the sentence before."""
    found: list[Span] = []
    at = 0
    for start, end in sentences_in(text):
        while at < len(citations) and citations[at].end <= start:
            at += 1
        if found and at < len(citations) and citations[at].start < start:
            found[-1] = (found[-1][0], end)
            continue
        mark, begin = at, start
        while (
            found
            and mark < len(citations)
            and citations[mark].start <= begin + 1
            and not citations[mark].inline
            and "\n" not in text[found[-1][1] : begin]
            and not speaks(text, citations[mark].end)
        ):
            begin = citations[mark].end
            found[-1] = (found[-1][0], begin)
            begin += len(text[begin:end]) - len(text[begin:end].lstrip(" .,;"))
            mark += 1
        if begin < end:
            found.append((begin, end))
    return found


def _in_sentence(text: str, start: int, end: int, inside: Sequence[Citation]) -> list[Span]:
    groups: list[list[Citation]] = []
    for one in inside:
        joined = bool(groups) and _ONLY_JOINS.fullmatch(
            text, groups[-1][-1].end, max(one.start, groups[-1][-1].end)
        )
        if joined:
            groups[-1].append(one)
        else:
            groups.append([one])
    if len(groups) == 1:
        if inside[0].inline:  # "under the policy it is 16 weeks; it was 12 before"
            start, end = _between_semicolons(text, start, end, inside[0])
        span = (start, end) if claim_words(without(text, (start, end), inside)) else (start, start)
        return [span] * len(inside)
    borders = [start, *(border for group in groups for border in (group[0].start, group[-1].end)), end]
    segments = list(zip(borders[::2], borders[1::2], strict=True))
    found: list[Span] = []
    owned = -1
    for number, group in enumerate(groups):
        before, after = segments[number], segments[number + 1]
        has = [bool(claim_words(text[first:last])) for first, last in (before, after)]
        behind = has[0] and (not group[0].inline or (is_announced(text, group[0].start) and owned < number))
        ends_here = number == len(groups) - 1 and not has[1]
        if behind or (has[0] and ends_here and owned < number):
            span, owned = before, max(owned, number)
        elif has[1]:
            span, owned = after, number + 1
        else:
            span = found[-1] if found else (start, end)
        if number == len(groups) - 1 and span == before and has[1]:
            span = (before[0], end)
        found += [span] * len(group)
    return found


def _between_semicolons(text: str, start: int, end: int, one: Citation) -> Span:
    """Return the part of a sentence that a citation is in."""
    before, after = text.rfind(";", start, one.start), text.find(";", one.end, end)
    return (start if before < 0 else before + 1), (end if after < 0 else after)
