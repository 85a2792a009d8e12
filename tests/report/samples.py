"""Analyses made by hand, without a model: a token is a word with the space before it."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import Any

import numpy as np

from lrp4rag.claims.arithmetic import Computed
from lrp4rag.claims.nearest import nearest
from lrp4rag.classifiers.analysis import Analysis
from lrp4rag.classifiers.verdict import (
    Assessment,
    Claims,
    Contradiction,
    Difference,
    Evidence,
    Judgement,
    TokenMarks,
    Verdict,
)
from lrp4rag.example import Example
from lrp4rag.features.contrast import context_of
from lrp4rag.lrp.relevance import Relevance
from lrp4rag.reader.encoding import Encoded, tokens_in
from lrp4rag.util.sentences import sentences_in
from lrp4rag.util.terminal import open_console

READER = {"name": "tiny", "weights": "w", "chat_template": False, "dtype": "float32", "digest": "abc123"}
RESPONSE = "It opened in 1874. Aliens built it from cheese."


def words(text: str) -> tuple[tuple[int, int], ...]:
    return tuple(match.span() for match in re.finditer(r"\s*\S+", text))


def encoded_of(example: Example) -> Encoded:
    """As `encode` makes it, with words for tokens."""
    offsets = words(example.prompt)
    segments = []
    for start, end in offsets:
        middle = (start + end) // 2
        held = [span for span in example.spans if span.start <= middle < span.end]
        segments.append(0 if not held else 1 if held[0].kind == "question" else 2 + held[0].index)
    spans = [(0, len(example.prompt)), *[(0, 0)] * (1 + len(example.passages))]
    for span in example.spans:
        spans[1 if span.kind == "question" else 2 + span.index] = (span.start, span.end)
    response = example.response or ""
    return Encoded(
        prompt_ids=tuple(range(len(offsets))),
        response_ids=tuple(range(len(words(response)))),
        text=example.prompt,
        response=response,
        prompt_offsets=offsets,
        response_offsets=words(response),
        segments=tuple(segments),
        segment_names=("template", "question", *(f"passage {k + 1}" for k in range(len(example.passages)))),
        spans=tuple(spans),
    )


def analysis_of(
    example: Example | None = None,
    *,
    encoded: Encoded | None = None,
    matrix: np.ndarray | None = None,
    probability: float | None = 0.78,
    token_threshold: float | None = None,
    rows: bool = True,
    segments: bool = True,
    reader: dict[str, Any] | None = None,
) -> Analysis:
    """Everything follows from R* (t, n), random unless given, as `analyse` would have it."""
    if example is None:
        example = Example(
            id="bridge-1",
            question="When did the bridge open?",
            passages=["The bridge opened in 1874.", "Fish is sold nearby."],
            response=RESPONSE,
        )
    encoded = encoded or encoded_of(example)
    shape = (len(encoded.response_offsets), len(encoded.prompt_offsets))
    if matrix is None:
        matrix = np.random.default_rng(0).normal(size=shape)
    matrix = matrix.astype(np.float32)
    members = np.array(encoded.segments)[None] == np.arange(len(encoded.segment_names))[:, None]
    relevance = Relevance(
        encoded=encoded,
        composite="attnlrp",
        target="response",
        reader=READER if reader is None else reader,
        logits=np.ones(shape[0], np.float32),
        response=matrix.mean(1),
        by_segment=(members.astype(np.float32) @ matrix.T) if segments else None,
    )
    threshold = None if probability is None else 0.5
    assessment = Assessment(probability, token_threshold=token_threshold)
    judgement = Judgement.of(encoded, assessment, threshold, relevance=relevance)
    return explained(
        judgement,
        Evidence(),
        example=example,
        encoded=encoded,
        reader=relevance.reader,
        composite="attnlrp",
        target="response",
        relevance=relevance,
        sentence_rows=np.stack([matrix[mask].mean(0) for mask in judgement.tokens]) if rows else None,
        generated=False,
        seconds={"push": 1.25, "classify": 0.5},
    )


def explained(judgement: Judgement, evidence: Evidence, **details: Any) -> Analysis:
    return judgement.verdict(evidence, Analysis, **{"judgement": judgement, "evidence": evidence}, **details)


def judged_again(base: Analysis, judgement: Judgement, evidence: Evidence, **changes: Any) -> Analysis:
    """The analysis with another judgement."""
    of_verdict = {one.name for one in fields(Verdict)} | {"judgement", "evidence"}
    names = [one.name for one in fields(Analysis) if one.name not in of_verdict]
    return explained(judgement, evidence, **{name: getattr(base, name) for name in names} | changes)


def grounded_then_not(**options: Any) -> Analysis:
    """Sentence 1 rests on "1874" of passage 1; sentence 2 on nothing, with "Fish" against it."""
    example = analysis_of().example
    encoded = encoded_of(example)
    tokens = [encoded.text[start:end].strip() for start, end in encoded.prompt_offsets]
    matrix = np.zeros((len(encoded.response_offsets), len(tokens)))
    matrix[:4, tokens.index("1874.")] = 2.0
    matrix[4:, next(k for k, token in enumerate(tokens) if "Fish" in token)] = -1.0
    return analysis_of(example, matrix=matrix, **options)


def contradicted(
    says: str = "4 weeks", instead: str = "2 weeks", *, relevance: float | None = 0.4, pushed: bool = True
) -> Analysis:
    """Of a token detector: passage 2 has `instead` of what the response says, which is one suspect span of
    its sentence. Where that is several sentences, all are suspect, and nothing is contradicted.

    Unless `pushed`, nothing but the contradiction has relevance, as where a reader cannot be pulled.
    """
    response, passage = f"A permit lasts {says} here.", f"A permit lasts {instead} here."
    base = analysis_of(Example("How long?", ["Permits are free.", passage], response, id="permit"))
    start = len("A permit lasts ")
    ends = start + len(says), start + len(instead)
    one = Contradiction(start, ends[0], says, instead, 1, start, ends[1], 3.1, relevance)
    inside = tokens_in(base.encoded.response_offsets, [(one.start, one.end)])
    count = len(sentences_in(response))
    marks = TokenMarks(np.where(inside, 0.9, 0.1).astype(np.float32), 0.5)
    claims = Claims(np.full(count, 0.78), ("a claim",) * count)
    assessment = Assessment(0.78, marks=marks, claims=claims, contradictions=(one,))
    judgement = Judgement.of(base.encoded, assessment, 0.5, relevance=base.relevance if pushed else None)
    context = context_of(base.encoded)
    evidence = Evidence([nearest(context.index, context.passages, response[s:e]) for s, e in judgement.spans])
    changes = {} if pushed else {"relevance": None, "sentence_rows": None}
    return judged_again(base, judgement, evidence, **changes)


def hostile(text: str, **options: Any) -> Analysis:
    """The same text in every field that a user, a file or a reader's name can fill."""
    encodable = text.encode("utf-8", "ignore").decode("utf-8")  # no tokenizer takes lone surrogates
    example = Example(
        id=encodable,
        question=encodable,
        passages=[f"{encodable} one", f"{encodable} two"],
        response=f"{encodable}. {encodable} again.",
        generator=encodable,
        source=encodable,
    )
    made = analysis_of(example, token_threshold=99.0, reader={"name": text, "digest": text}, **options)
    return replace(
        made,
        relevance=replace(made.relevance, composite=text, target=text),
        seconds={text: 1.0},
        computed=(Computed(0, 1, text, text, 0, ((0, 1),)),),
        differences=(Difference("said of another", 0, 1, 0, 0, 1, text, text),),
    )


def printed_at(view: object, width: int, *, terminal: bool = False) -> str:
    """What a console of this width prints, no line of it wider."""
    console = open_console(width=width, force_terminal=terminal, color_system=None)
    with console.capture() as capture:
        console.print(view)
    lines = capture.get().splitlines()
    assert all(len(line) <= width for line in lines)
    return "\n".join(lines)
