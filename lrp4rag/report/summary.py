"""What a notebook shows of a verdict: a fragment of HTML, without script."""

from __future__ import annotations

from typing import Any

from lrp4rag.classifiers.analysis import Analysis
from lrp4rag.report.decision import Decision
from lrp4rag.report.templates import encodable, html_template
from lrp4rag.report.words import (
    contradiction_words,
    rests_on,
    unlike_words,
    verdict_words,
)
from lrp4rag.util.text import visible


def html_summary(analysis: Analysis) -> str:
    """The verdict, the response with its suspect spans marked, and what each sentence rests on."""
    page = html_template("summary.html.j2").render(summary=summary_of(analysis))
    return encodable(page)


def summary_of(analysis: Analysis, *, decision: Decision | None = None) -> dict[str, Any]:
    """What the template of a summary shows; `decision` is what a policy does with the response."""
    verdict, response = analysis.verdict, analysis.encoded.response
    pieces, end = list[tuple[str, str]](), 0
    for span in sorted(verdict.spans, key=lambda span: span.start):
        words = "; ".join([span.kind, *contradiction_words(span)])
        pieces += [(response[end : span.start], ""), (span.text, words)]
        end = span.end
    pieces.append((response[end:], ""))
    return {
        "headline": verdict_words(verdict),
        "color": {None: "#555", True: "#b3261e", False: "#1b6e3c"}[verdict.hallucinated],
        "unlike": unlike_words(verdict),
        "pieces": [piece for piece in pieces if piece[0]],
        "contradicted": [line for span in verdict.spans for line in contradiction_words(span)],
        "decision": None if decision is None else _decision(decision),
        "sentences": [(sentence, rests_on(sentence)) for sentence in verdict.sentences],
    }


def _decision(decision: Decision) -> dict[str, Any]:
    words = decision.words()
    return {
        "action": words.action,
        "why": "; ".join(filter(None, (words.reason, words.measures))),
        "told": visible(words.message),
        "news": [(check, visible(finding)) for check, finding in words.findings],
        "unavailable": [visible(cause) for cause in words.unavailable],
    }
