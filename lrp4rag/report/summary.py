"""What a notebook shows of a verdict: a fragment of HTML, without script."""

from __future__ import annotations

from lrp4rag.classifiers.analysis import Analysis
from lrp4rag.report.templates import html_template
from lrp4rag.report.words import rests_on, unlike_words, verdict_words


def html_summary(analysis: Analysis) -> str:
    """The verdict, the response with its suspect spans marked, and what each sentence rests on."""
    verdict, response = analysis.verdict, analysis.relevance.encoded.response
    pieces, end = list[tuple[str, float | None, bool]](), 0
    for span in sorted(verdict.spans, key=lambda span: span.start):
        pieces += [(response[end : span.start], None, False), (span.text, span.probability, True)]
        end = span.end
    pieces.append((response[end:], None, False))
    page = html_template("summary.html.j2").render(
        headline=verdict_words(verdict),
        color={None: "#555", True: "#b3261e", False: "#1b6e3c"}[verdict.hallucinated],
        unlike=unlike_words(verdict),
        pieces=[piece for piece in pieces if piece[0]],
        sentences=[(one, rests_on(one)) for one in verdict.sentences],
    )
    return page.encode("utf-8", "replace").decode("utf-8")
