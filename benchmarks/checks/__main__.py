"""What checks find on cases that were written before them, and what they cost."""

from __future__ import annotations

import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import click
import numpy as np
from scipy.stats import binomtest

from benchmarks import command
from benchmarks.checks.citation_cases import Case, generated, written
from benchmarks.command import SETTINGS, Report, benchmark, count, table
from lrp4rag import Detector
from lrp4rag.data import load_examples
from lrp4rag.guard.checks.check import CheckInput, Finding
from lrp4rag.guard.checks.citations import Citations
from lrp4rag.guard.checks.conflicts import Conflicts
from lrp4rag.guard.checks.omissions import Omissions
from lrp4rag.guard.checks.registry import run_checks
from lrp4rag.guard.policy import Policy
from lrp4rag.source import Source
from lrp4rag.training.sets import set_path
from lrp4rag.util.errors import InputError
from lrp4rag.util.sentences import sentences_in

FOLDER = Path(__file__).parent
CONFLICT_CASES, OMISSION_CASES = FOLDER / "conflict_cases.json", FOLDER / "omission_cases.json"
KINDS = ("verified", "misattributed", "fabricated")
HALVES = ("development", "test")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
Figures = dict[str, Any]


@click.group(context_settings=SETTINGS)
def main() -> None:
    """Checks beside the detector: citations, conflicts and omissions that are found, and seconds."""


def share(hits: int, of: int) -> Figures:
    """A share with its 95 % interval (Wilson)."""
    if not of:
        return {"hits": 0, "of": 0, "value": None, "low": None, "high": None}
    interval = binomtest(hits, of).proportion_ci(method="wilson")
    return {"hits": hits, "of": of, "value": hits / of, "low": interval.low, "high": interval.high}


def share_row(name: str, figures: Figures) -> tuple[str, str, str]:
    if figures["value"] is None:
        return name, "", ""
    interval = f"{figures['value']:.2f} [{figures['low']:.2f}, {figures['high']:.2f}]"
    return name, f"{figures['hits']} of {figures['of']}", interval


# Citations


def is_right(case: Case, findings: Sequence[Finding]) -> bool:
    """Whether the citations of a case, and no others, are found and of the right kind."""
    return len(findings) == len(case.expected) and all(
        finding.kind == kind and _same(finding, text)
        for finding, (text, kind) in zip(findings, case.expected, strict=True)
    )


def _same(finding: Finding, text: str) -> bool:
    cited, text = str(finding.details["cited"]).lower(), text.lower()
    return cited in text or text in cited


def citation_figures(cases: Sequence[Case]) -> Figures:
    """Cases and citations, the share of cases that are right, of all and by format, and fabricated citations
    called verified."""
    wrong, slipped, forms = list[str](), 0, defaultdict[str, list[bool]](list)
    for case in cases:
        findings = Citations()(CheckInput("", case.sources, case.response))
        forms[case.form].append(is_right(case, findings))
        wrong += [] if forms[case.form][-1] else [case.response]
        false = [text for text, kind in case.expected if kind == "fabricated"]
        slipped += sum(one.kind == "verified" and any(_same(one, text) for text in false) for one in findings)
    kinds = Counter(kind for case in cases for _, kind in case.expected)
    return {
        "cases": len(cases),
        **{kind: kinds[kind] for kind in KINDS},
        "right": 1 - len(wrong) / len(cases),
        "fabricated_called_verified": slipped,
        "wrong": wrong,
        "by_format": {form: sum(rights) / len(rights) for form, rights in forms.items()},
    }


def ragtruth_figures(path: str) -> Figures:
    """Citations in real answers, by kind, and how many stand in a sentence that people marked."""
    seen, marked, answers, citing, sentences, marked_sentences = Counter[str](), Counter[str](), 0, 0, 0, 0
    for example in load_examples(path):
        findings = Citations()(CheckInput(example.question, tuple(example.sources), example.response))
        labels = [(one.start, one.end) for one in example.labels or ()]
        spans = sentences_in(example.response or "")
        answers, citing, sentences = answers + 1, citing + bool(findings), sentences + len(spans)
        marked_sentences += sum(_meets(span, labels) for span in spans)
        for one in findings:
            assert one.start is not None
            span = next((span for span in spans if span[0] <= one.start < span[1]), (one.start, one.start))
            seen[one.kind] += 1
            marked[one.kind] += _meets(span, labels)
    return {
        "answers": answers,
        "answers_that_cite": citing,
        "citations": seen.total(),
        **{kind: seen[kind] for kind in KINDS},
        "marked": {kind: marked[kind] for kind in KINDS},
        "share_marked": {kind: marked[kind] / seen[kind] if seen[kind] else None for kind in KINDS},
        "share_marked_of_all_sentences": marked_sentences / sentences,
    }


def _meets(span: tuple[int, int], labels: Sequence[tuple[int, int]]) -> bool:
    return any(start < span[1] and end > span[0] for start, end in labels)


@benchmark
@count("--each", 25, "True citations in each format, and as many false ones.")
@count("--seed", 0, "Of the grammar.", least=0)
@click.option("--ragtruth", "path", metavar="FOLDER", help="Also look at RAGTruth's answers.")
def citations(each: int, seed: int, path: str | None) -> Report:
    """Citations from a grammar and written by hand, half of them true; and in real answers.

    \b
    Examples:
      python -m benchmarks.checks citations
      python -m benchmarks.checks citations --ragtruth RAGTRUTH --out docs/results/checks/citations.json
    """
    result: Figures = {
        "generated": citation_figures(generated(each, seed)),
        "written": citation_figures(written()),
    }
    heads = ("cases", *KINDS, "fabricated_called_verified")
    lines = table(
        ("", *heads, "right"),
        [(name, *(str(one[head]) for head in heads), f"{one['right']:.3f}") for name, one in result.items()],
    )
    if path is not None:
        real = result["ragtruth"] = ragtruth_figures(path)
        rows = [[name, *(str(real[key][kind]) for kind in KINDS)] for name, key in _MARKED.items()]
        lines += ["", *table(("RAGTruth", *KINDS), [["citations", *(str(real[k]) for k in KINDS)], *rows])]
    return result, lines


_MARKED = {"in a marked sentence": "marked", "share": "share_marked"}


# Conflicts between passages


def conflicts_of(texts: Iterable[Mapping[str, Any]]) -> list[Finding]:
    return Conflicts()(CheckInput("", tuple(Source(**one) for one in texts), now=NOW))


def _sides(finding: Finding) -> list[Mapping[str, Any]]:
    return list(finding.details["sides"])  # type: ignore[arg-type]


def names_values(findings: Sequence[Finding], case: Mapping[str, Any]) -> bool:
    """Whether a conflict between the first two passages touches the characters of both values."""
    expected = []
    for passage, value in zip(case["passages"], case["values"], strict=False):
        match = re.search(rf"(?<!\w){re.escape(value)}(?!\w)", passage["text"])
        if match is None:
            raise InputError(f"no passage has the value '{value}' of a case")
        expected.append(match.span())
    return any(
        finding.passages == (0, 1)
        and all(
            side["start"] < end and start < side["end"]
            for side, (start, end) in zip(_sides(finding), expected, strict=True)
        )
        for finding in findings
    )


def conflict_figures(
    cases: Mapping[str, Sequence[Mapping[str, Any]]], halves: Sequence[str] = HALVES
) -> Figures:
    """Recall, false alarms and precision, and the ids of cases that fail."""
    conflicting, harmless = (
        [case for case in cases[kind] if case["split"] in halves] for kind in ("conflicting", "harmless")
    )
    missed = [one["id"] for one in conflicting if not names_values(conflicts_of(one["passages"]), one)]
    alarms = [one["id"] for one in harmless if conflicts_of(one["passages"])]
    hits = len(conflicting) - len(missed)
    return {
        "recall": share(hits, len(conflicting)),
        "false_alarms": share(len(alarms), len(harmless)),
        "precision": share(hits, hits + len(alarms)),
        "missed": missed,
        "alarms": alarms,
    }


def counterfactual_figures(path: Path) -> Figures:
    """RGB: the same passage with another answer, another passage with another answer, and two passages with
    the same answer."""
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {error}", path=path) from error
    same, across, agreeing = [], [], []
    for row in rows:
        right, wrong = ([{"text": text} for text in row[key]] for key in ("positive", "positive_wrong"))
        same.append(_is_about_answer([right[0], wrong[0]], row))
        if len(right) > 1 and len(wrong) > 1:
            across.append(_is_about_answer([right[0], wrong[1]], row))
            agreeing.append(bool(conflicts_of(right[:2])))
    return {
        "same_passage_recall": share(sum(same), len(same)),
        "other_passage_recall": share(sum(across), len(across)),
        "agreeing_false_alarms": share(sum(agreeing), len(agreeing)),
    }


def _is_about_answer(passages: Sequence[Mapping[str, Any]], row: Mapping[str, Any]) -> bool:
    """Whether a side's value and the answer share a word, on both sides of a conflict."""
    answer = row["answer"]
    while isinstance(answer, list):
        answer = answer[0]
    answers = [_words(answer), _words(row["fakeanswer"])]
    return any(
        all(_words(side["value"]) & words for side, words in zip(_sides(finding), answers, strict=False))
        for finding in conflicts_of(passages)
    )


def _words(value: object) -> set[str]:
    return set(str(value).casefold().replace(",", " ").split())


@benchmark
@click.option(
    "--rgb", type=click.Path(exists=True, dir_okay=False), help="RGB's en_fact.json: counterfactual passages."
)
def conflicts(rgb: str | None) -> Report:
    """Conflicts that are found, and alarms where passages do not contradict each other.

    \b
    Examples:
      python -m benchmarks.checks conflicts
      python -m benchmarks.checks conflicts --rgb en_fact.json --out docs/results/checks/conflicts.json
    """
    cases = json.loads(CONFLICT_CASES.read_text(encoding="utf-8"))
    parts = {name: conflict_figures(cases, [name]) for name in HALVES} | {"all": conflict_figures(cases)}
    result: Figures = {"parts": parts, "counterfactual": counterfactual_figures(Path(rgb)) if rgb else None}
    rows = [
        share_row(f"{name}: {measure}", figures[measure])
        for name, figures in parts.items()
        for measure in ("recall", "false_alarms", "precision")
    ]
    rows += [share_row(f"RGB: {name}", figures) for name, figures in (result["counterfactual"] or {}).items()]
    failing = [f"{name}: missed {one['missed']}, alarms {one['alarms']}" for name, one in parts.items()]
    return result, [*table(("", "cases", "share [95 %]"), rows), "", *failing]


# Conditions that are left out


def omission_figures() -> dict[str, Figures]:
    """By half: pairs, how many leave something out, precision, recall, and the answers judged wrongly."""
    cases = json.loads(OMISSION_CASES.read_text(encoding="utf-8"))
    return {half: _omissions([case for case in cases if case["half"] == half]) for half in HALVES}


def _omissions(cases: Sequence[Mapping[str, Any]]) -> Figures:
    inputs = [
        CheckInput(case["question"], tuple(map(Source, case["passages"])), case["answer"]) for case in cases
    ]
    reported = np.array([bool(Omissions()(given)) for given in inputs])
    omitted = np.array([case["kind"] == "omitted" for case in cases])
    right = int((omitted & reported).sum())
    return {
        "pairs": len(cases),
        "omitted": int(omitted.sum()),
        "reported": int(reported.sum()),
        "right": right,
        "precision": right / max(int(reported.sum()), 1),
        "recall": right / max(int(omitted.sum()), 1),
        "wrong": [
            {"kind": cases[k]["kind"], "answer": cases[k]["answer"]}
            for k in np.flatnonzero(omitted != reported).tolist()
        ],
    }


@benchmark
def omissions() -> Report:
    """Precision and recall of the check for omitted conditions on pairs written by hand.

    \b
    Example:
      python -m benchmarks.checks omissions --out docs/results/checks/omissions.json
    """
    halves = omission_figures()
    rows = [
        (name, str(half["pairs"]), f"{half['precision']:.2f}", f"{half['recall']:.2f}")
        for name, half in halves.items()
    ]
    return {"halves": halves}, table(("half", "pairs", "precision", "recall"), rows)


# What they cost


@benchmark
@count("--answers", 40, "Answers, each of another question.")
@command.dtype
def cost(answers: int, dtype: str) -> Report:
    """Seconds of a verdict alone, and of each check of the default policy, on answers of the bundled set.

    \b
    Example:
      python -m benchmarks.checks cost --out docs/results/checks/cost.json
    """
    known = [one for one in load_examples(set_path(Path("everyday"))) if one.response]
    checks, taken = Policy().enabled_checks, defaultdict[str, list[float]](list)
    with Detector.load(dtype=dtype) as detector:
        some = Random(0).sample(known, min(answers, len(known)))
        detector.judge(some[0], evidence=False)  # the first pass is slower
        for example in some:
            started = time.perf_counter()
            verdict = detector.judge(example, evidence=False)
            taken["verdict"].append(time.perf_counter() - started)
            given = CheckInput(example.question, example.sources, example.response, verdict)
            for name, seconds in run_checks(checks, given, budget=60).seconds.items():
                taken[name].append(seconds)
    medians = {name: float(np.median(taken[name])) for name in ("verdict", *checks)}
    shares = {name: sum(taken[name]) / sum(taken["verdict"]) for name in checks}
    result = {
        "checks_over_verdict": sum(shares.values()),
        **{f"{name}_over_verdict": part for name, part in shares.items()},
        **{f"{name}_seconds": median for name, median in medians.items()},
    }
    rows = [(name, f"{medians[name]:.4f}", f"{shares.get(name, 1):.3f}") for name in medians]
    rows.append(("all checks", "", f"{sum(shares.values()):.3f}"))
    return result, table(("", "seconds, median", "over the verdict"), rows)


for each in (citations, conflicts, omissions, cost):
    main.add_command(each, each.callback.__name__ if each.callback else None)


if __name__ == "__main__":
    main()
