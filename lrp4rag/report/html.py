"""One self-contained page per analysis: no network, and nothing in it runs but its own script."""

from __future__ import annotations

import json
from typing import Any

from markupsafe import Markup

from lrp4rag.classifiers.analysis import Analysis
from lrp4rag.policy.assess import Assessment
from lrp4rag.reader.encoding import Encoded
from lrp4rag.report.numbers import signed
from lrp4rag.report.page import (
    LEVELS,
    View,
    contradicted_places,
    cut,
    prompt_runs,
    response_runs,
    rounded,
    sentence_view,
    token_view,
)
from lrp4rag.report.routing import news, shares_words, unavailable_words
from lrp4rag.report.templates import asset, html_template, policy_hash
from lrp4rag.report.words import (
    contradiction_words,
    figure_words,
    main_reasons,
    reader_words,
    rests_on,
    time_words,
    token_words,
    unlike_words,
    verdict_words,
)
from lrp4rag.text import one_line, visible

SPAN_LENGTH = 60
# "<" ends a script element early, and the two separators once ended a line of a string.
_JSON_ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def html_page(analysis: Analysis, *, detector: str | None = None, decision: Assessment | None = None) -> str:
    """The page: verdict, prompt and response; choosing a sentence shades the prompt by its relevance.

    Rows come from `sentence_rows` and `token_rows`, where given. `detector` names the detector in
    the small print; `decision` is what a policy does with the response. Encode the page as UTF-8.
    """
    encoded, verdict = analysis.encoded, analysis.verdict
    pieces = cut(encoded.prompt_offsets, len(encoded.text))
    response_pieces = cut(encoded.response_offsets, len(encoded.response))
    sentences = sentence_view(analysis, pieces)
    tokens = token_view(analysis, pieces, response_pieces)
    script, style = asset("page.js"), asset("page.css")
    page = html_template("page.html.j2").render(
        title=f"{verdict_words(verdict)} · {visible(analysis.example.id)}",
        headline=verdict_words(verdict),
        verdict=verdict,
        outcome={None: "none", True: "bad", False: "good"}[verdict.hallucinated],
        example=analysis.example,
        facts=_facts(analysis, detector),
        unlike=[visible(line) for line in unlike_words(verdict)],
        decision=None if decision is None else _decision(decision),
        spans=_spans(analysis),
        reasons=[visible(line) for line in main_reasons(verdict, analysis.example.generator)],
        encoded=encoded,
        figures=figure_words(verdict),
        prompt=prompt_runs(encoded, pieces, sentences, contradicted_places(analysis)),
        response=response_runs(analysis, response_pieces),
        sentences=[
            (k, visible(sentence.text), sentence, rests_on(sentence))
            for k, sentence in enumerate(verdict.sentences, 1)
        ],
        attributed=any(sentence.relevance is not None for sentence in verdict.sentences),
        shaded=sentences.rows.size > 0,
        tokens=tokens is not None,
        scale=f"{sentences.scale:.3g}",
        levels=range(-LEVELS, LEVELS + 1),
        bars=_bars(encoded, sentences),
        data=_script_json(_data(analysis, sentences, tokens)),
        script=Markup(script),
        style=Markup(style),
        script_hash=policy_hash(script),
        style_hash=policy_hash(style),
    )
    # Lone surrogates (from a JSON escape, say) have no encoding.
    return page.encode("utf-8", "replace").decode("utf-8")


def _spans(analysis: Analysis) -> list[tuple[str, str, list[str]]] | None:
    """Each suspect span's text, probability, and lines with its kind and what passages have in its place;
    None where tokens have no probabilities."""
    verdict = analysis.verdict
    if verdict.marks is None:
        return None
    return [
        (
            one_line(span.text, SPAN_LENGTH),
            f"{span.probability:.2f}",
            [span.kind, *contradiction_words(span)],
        )
        for span in verdict.spans
    ]


def _decision(found: Assessment) -> dict[str, Any]:
    """What is done and why, what the reader of the answer is told, and what checks found, in words."""
    words = (found.decided.reason, shares_words(found))
    return {
        "action": found.decided.action,
        "why": "; ".join(one for one in words if one),
        "told": visible(found.message),
        "news": news(found),
        "unavailable": unavailable_words(found),
    }


def _facts(analysis: Analysis, detector: str | None) -> list[tuple[str, str]]:
    verdict = analysis.verdict
    named = detector or ("none" if verdict.probability is None else "not named")
    if verdict.threshold is not None:
        named += f"; hallucinated from probability {verdict.threshold:.2f}"
    if verdict.token_threshold is not None:
        named += f"; suspect below relevance {verdict.token_threshold:.3g}"
    if verdict.marks is not None:
        named += f"; tokens suspect from probability {verdict.marks.threshold:.2f}"
    source = "the reader" if analysis.generated else analysis.example.generator
    facts = [
        ("example", analysis.example.id),
        ("response by", source or "unknown"),
        ("reader", reader_words(dict(analysis.reader))),
        ("composite", f"{analysis.composite}, target {analysis.target}"),
        ("detector", named),
        ("length", token_words(analysis.encoded)),
        ("time", time_words(analysis.seconds)),
    ]
    return [(name, visible(words)) for name, words in facts]


def _data(analysis: Analysis, sentences: View, tokens: View | None) -> dict[str, Any]:
    low, high = _bar_range(sentences)
    data = {
        "levels": LEVELS,
        "sentences": {**sentences.as_json(), "low": low, "high": high},
        "restsOn": [rests_on(sentence) for sentence in analysis.verdict.sentences],
        "relevance": [
            None if sentence.relevance is None else round(sentence.relevance, 6)
            for sentence in analysis.verdict.sentences
        ],
    }
    if tokens is not None:
        low, high = _bar_range(tokens)
        data["tokens"] = {**tokens.as_json(), "low": low, "high": high}
    return data


def _bars(encoded: Encoded, view: View) -> list[dict[str, Any]]:
    """Passages first, then the question and the template, as bars between 0 and 100."""
    if not view.bars.size:
        return []
    low, high = _bar_range(view)
    order = [*range(2, len(encoded.segment_names)), 1, 0]
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
