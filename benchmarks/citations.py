"""How well citations are told apart: verified, misattributed, fabricated."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import click

from benchmarks.citation_cases import Case, generated, written
from benchmarks.command import Report, benchmark, count, table
from lrp4rag.data import load_examples
from lrp4rag.guard.checks.check import CheckInput, Finding
from lrp4rag.guard.checks.citations import Citations
from lrp4rag.util.sentences import sentences_in

KINDS = ("verified", "misattributed", "fabricated")


def findings(case: Case) -> list[Finding]:
    return Citations()(CheckInput("", case.sources, case.response))


def is_right(case: Case, found: Sequence[Finding]) -> bool:
    """Whether the citations of a case, and no others, are found and of the right kind."""
    return len(found) == len(case.expected) and all(
        one.kind == kind and _same(str(one.details["cited"]), text)
        for one, (text, kind) in zip(found, case.expected, strict=True)
    )


def measured(cases: Sequence[Case]) -> dict[str, Any]:
    """Cases and citations, the share of cases that are right, and fabricated citations called verified."""
    wrong: list[str] = []
    slipped = 0
    kinds: Counter[str] = Counter()
    for case in cases:
        found = findings(case)
        kinds.update(kind for _, kind in case.expected)
        if not is_right(case, found):
            wrong.append(case.response)
        false = [text for text, kind in case.expected if kind == "fabricated"]
        slipped += sum(
            one.kind == "verified" and any(_same(str(one.details["cited"]), text) for text in false)
            for one in found
        )
    return {
        "cases": len(cases),
        **{kind: kinds[kind] for kind in KINDS},
        "right": 1 - len(wrong) / len(cases),
        "fabricated_called_verified": slipped,
        "wrong": wrong,
    }


def by_form(cases: Sequence[Case]) -> dict[str, float]:
    """The share that is right of each format."""
    some: dict[str, list[bool]] = defaultdict(list)
    for case in cases:
        some[case.form].append(is_right(case, findings(case)))
    return {form: sum(rights) / len(rights) for form, rights in some.items()}


def ragtruth(path: str) -> dict[str, Any]:
    """Citations in real answers, by kind, and how many stand in a sentence that people marked."""
    seen: Counter[str] = Counter()
    marked: Counter[str] = Counter()
    answers = labelled = sentences = marked_sentences = 0
    for example in load_examples(path):
        found = Citations()(CheckInput(example.question, tuple(example.sources), example.response))
        answers += 1
        labels = [(one.start, one.end) for one in example.labels or ()]
        spans = sentences_in(example.response or "")
        sentences += len(spans)
        marked_sentences += sum(_meets(span, labels) for span in spans)
        labelled += bool(found)
        for one in found:
            assert one.start is not None
            span = next((span for span in spans if span[0] <= one.start < span[1]), (one.start, one.start))
            seen[one.kind] += 1
            marked[one.kind] += _meets(span, labels)
    return {
        "answers": answers,
        "answers_that_cite": labelled,
        "citations": sum(seen.values()),
        **{kind: seen[kind] for kind in KINDS},
        "marked": {kind: marked[kind] for kind in KINDS},
        "share_marked": {kind: marked[kind] / seen[kind] if seen[kind] else None for kind in KINDS},
        "share_marked_of_all_sentences": marked_sentences / sentences,
    }


def _same(found: str, text: str) -> bool:
    found, text = found.lower(), text.lower()
    return found in text or text in found


def _meets(span: tuple[int, int], labels: Sequence[tuple[int, int]]) -> bool:
    return any(start < span[1] and end > span[0] for start, end in labels)


@benchmark
@count("--each", 25, "True citations in each format, and as many false ones.")
@click.option("--seed", default=0, show_default=True, help="Of the grammar.")
@click.option("--ragtruth", "path", metavar="FOLDER", help="Also look at RAGTruth's answers.")
def main(each: int, seed: int, path: str | None) -> Report:
    """Citations from a grammar and written by hand, half of them true; and in real answers.

    \b
    Examples:
      python -m benchmarks.citations
      python -m benchmarks.citations --ragtruth RAGTRUTH/dataset
    """
    cases = generated(each, seed)
    result: dict[str, Any] = {
        "generated": measured(cases) | {"by_format": by_form(cases)},
        "written": measured(written()),
    }
    rows = [
        (
            name,
            *(f"{one[key]}" for key in ("cases", *KINDS)),
            f"{one['right']:.3f}",
            f"{one['fabricated_called_verified']}",
        )
        for name, one in result.items()
    ]
    lines = table(("", "cases", *KINDS, "right", "fabricated called verified"), rows)
    if path is not None:
        real = result["ragtruth"] = ragtruth(path)
        lines += ["", *table(
            ("RAGTruth", *KINDS),
            [("citations", *(f"{real[kind]}" for kind in KINDS)),
             ("in a marked sentence", *(json.dumps(real["share_marked"][kind]) for kind in KINDS))],
        )]  # fmt: skip
    return result, lines


if __name__ == "__main__":
    main()
