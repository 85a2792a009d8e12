"""A verdict as a self-contained page, which runs its own script alone, and as a fragment without any."""

from __future__ import annotations

import json
from typing import Any

from markupsafe import Markup

from lrp4rag.classifiers.analysis import Analysis
from lrp4rag.reader.encoding import FIRST_PASSAGE, Encoded
from lrp4rag.report.decision import Decision
from lrp4rag.report.numbers import signed
from lrp4rag.report.page import (
    LEVELS,
    View,
    contradiction_notes,
    cut,
    prompt_runs,
    response_runs,
    rounded,
    sentence_view,
)
from lrp4rag.report.record import record
from lrp4rag.report.templates import (
    STATIC_SCRIPTS,
    STATIC_STYLES,
    content_policy,
    hash_source,
    html_template,
    joined,
)
from lrp4rag.report.words import (
    cautions,
    computed_words,
    contradiction_words,
    difference_words,
    figure_words,
    prevalence_words,
    reader_words,
    rests_on,
    time_words,
    token_words,
    verdict_words,
)
from lrp4rag.util.text import encodable, visible

# "<" ends a script element early, and the two separators once ended a line of a string.
_JSON_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def html_page(analysis: Analysis, *, detector: str | None = None, decision: Decision | None = None) -> str:
    """Build the page: verdict, answer and passages, with what each sentence rests on and what contradicts
    it; for experts the numbers, and the prompt shaded by relevance.

    Shades come from `sentence_rows`, where given. `detector` names the detector in the small print;
    `decision` is what a policy does with the response. Encode the page as UTF-8."""
    encoded = analysis.encoded
    pieces = cut(encoded.prompt_offsets, len(encoded.text))
    sentences, notes = sentence_view(analysis, pieces), contradiction_notes(analysis)
    script, style = joined(STATIC_SCRIPTS), joined(STATIC_STYLES)
    page = html_template("web/static.html.j2").render(
        title=f"{verdict_words(analysis)} · {visible(analysis.example.id)}",
        policy=content_policy(hash_source(script), hash_source(style)),
        verdict=analysis,
        summary=summary_of(analysis, decision=decision),
        facts=_facts(analysis, detector),
        encoded=encoded,
        contradicted=bool(notes),
        figures=figure_words(analysis),
        prompt=prompt_runs(encoded, pieces, sentences, notes),
        response=response_runs(analysis),
        shaded=sentences.rows.size > 0,
        scale=f"{sentences.scale:.3g}",
        levels=range(-LEVELS, LEVELS + 1),
        bars=_bars(encoded, sentences),
        data=_script_json(_view_data(analysis, decision)),
        rows=_script_json(_rows(analysis, sentences)),
        script=Markup(script),
        style=Markup(style),
    )
    return encodable(page)


def html_summary(analysis: Analysis) -> str:
    """Build a fragment for notebooks: verdict, response with suspect spans, and what each sentence rests
    on."""
    page = html_template("summary.html.j2").render(summary=summary_of(analysis))
    return encodable(page)


def summary_of(analysis: Analysis, *, decision: Decision | None = None) -> dict[str, Any]:
    """Return the values of the summary's template; `decision` is what a policy does with the response."""
    response = analysis.encoded.response
    texts, end = list[tuple[str, str]](), 0
    for span in sorted(analysis.spans, key=lambda span: span.start):
        words = "; ".join([span.kind, *contradiction_words(span)])
        texts += [(response[end : span.start], ""), (span.text, words)]
        end = span.end
    texts.append((response[end:], ""))
    shifted = [] if analysis.prevalence is None else [prevalence_words(analysis.prevalence)]
    return {
        "headline": verdict_words(analysis),
        "color": {None: "#555", True: "#b3261e", False: "#1b6e3c"}[analysis.hallucinated],
        "notes": [*shifted, *cautions(analysis)],
        "texts": [(text, words) for text, words in texts if text],
        "contradicted": [line for span in analysis.spans for line in contradiction_words(span)],
        "further": [*map(difference_words, analysis.differences), *map(computed_words, analysis.computed)],
        "decision": None if decision is None else _decision(decision),
        "sentences": [(sentence, rests_on(sentence)) for sentence in analysis.sentences],
    }


def _decision(decision: Decision) -> dict[str, Any]:
    words = decision.words()
    return {
        "action": words.action,
        "why": "; ".join(filter(None, (words.reason, words.measures))),
        "message": visible(words.message),
        "news": [(check, visible(finding)) for check, finding in words.findings],
        "unavailable": [visible(cause) for cause in words.unavailable],
    }


def _facts(analysis: Analysis, detector: str | None) -> list[tuple[str, str]]:
    named = detector or ("none" if analysis.threshold is None else "not named")
    if analysis.threshold is not None:
        named += f"; hallucinated from probability {analysis.threshold:.2f}"
    if analysis.prevalence is not None:
        named += f"; {prevalence_words(analysis.prevalence)}"
    if analysis.token_threshold is not None:
        named += f"; marked in suspect sentences below relevance {analysis.token_threshold:.3g}"
    source = "the reader" if analysis.generated else analysis.example.generator
    facts = [
        ("example", analysis.example.id),
        ("response by", source or "unknown"),
        ("reader", reader_words(dict(analysis.reader))),
        ("composite", f"{analysis.composite}, target {analysis.target}"),
        ("detector", named),
        ("length", token_words(analysis.encoded, analysis.excerpt)),
        ("time", time_words(analysis.seconds)),
    ]
    return [(name, visible(words)) for name, words in facts]


def _view_data(analysis: Analysis, decision: Decision | None) -> dict[str, Any]:
    """Return the data of the page's scripts, as in a reply of the server."""
    example = analysis.example
    return {
        "question": example.question,
        "passages": list(example.passages),
        "verdict": record(analysis, decision=decision),
    }


def _rows(analysis: Analysis, sentences: View) -> dict[str, Any]:
    """Return the relevance that shades the prompt."""
    low, high = _bar_range(sentences)
    return {
        "levels": LEVELS,
        "sentences": {**sentences.as_json(), "low": low, "high": high},
        "restsOn": [rests_on(sentence) for sentence in analysis.sentences],
        "relevance": [
            None if sentence.relevance is None else round(sentence.relevance, 6)
            for sentence in analysis.sentences
        ],
    }


def _bars(encoded: Encoded, view: View) -> list[dict[str, Any]]:
    """Return bars between 0 and 100: passages first, then the question and the template."""
    if not view.bars.size:
        return []
    low, high = _bar_range(view)
    order = [*range(FIRST_PASSAGE, len(encoded.segment_names)), 1, 0]
    values = rounded(view.mean_bars)
    return [
        {
            "index": k,
            "name": encoded.segment_names[k],
            "value": signed(values[k]),
            "negative": values[k] < 0,
            "x": round((min(values[k], 0.0) - low) / (high - low) * 100, 2),
            "width": round(abs(values[k]) / (high - low) * 100, 2),
        }
        for k in order
    ]


def _bar_range(view: View) -> tuple[float, float]:
    if not view.bars.size:
        return 0.0, 1.0
    low, high = min(float(view.bars.min()), 0.0), max(float(view.bars.max()), 0.0)
    return (low, high) if high > low else (0.0, 1.0)


def _script_json(data: dict[str, Any]) -> Markup:
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return Markup(text.translate(_JSON_ESCAPES))
