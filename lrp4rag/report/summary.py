"""What a notebook shows of a verdict: a fragment of HTML, without script."""

from __future__ import annotations

from lrp4rag.classifiers.analysis import Analysis
from lrp4rag.report.templates import html_template
from lrp4rag.report.words import contradiction_words, rests_on, unlike_words, verdict_words


def html_summary(analysis: Analysis) -> str:
    """The verdict, the response with its suspect spans marked, and what each sentence rests on."""
    verdict, response = analysis.verdict, analysis.encoded.response
    pieces, end = list[tuple[str, float | None, str]](), 0
    for span in sorted(verdict.spans, key=lambda span: span.start):
        words = "; ".join([span.kind, *contradiction_words(span)])
        pieces += [(response[end : span.start], None, ""), (span.text, span.probability, words)]
        end = span.end
    pieces.append((response[end:], None, ""))
    page = html_template("summary.html.j2").render(
        headline=verdict_words(verdict),
        color={None: "#555", True: "#b3261e", False: "#1b6e3c"}[verdict.hallucinated],
        unlike=unlike_words(verdict),
        pieces=[piece for piece in pieces if piece[0]],
        contradicted=[line for span in verdict.spans for line in contradiction_words(span)],
        sentences=[(one, rests_on(one)) for one in verdict.sentences],
    )
    return page.encode("utf-8", "replace").decode("utf-8")
