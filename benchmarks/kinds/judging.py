"""Raw scores of labelled answers: minimal pairs, the same questions with edited passages, out of folds."""

from __future__ import annotations

import json
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import takewhile
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from benchmarks.elsewhere.judging import controls_of
from benchmarks.elsewhere.sets import Item
from lrp4rag.claims.find import find_values
from lrp4rag.claims.value import agree
from lrp4rag.claims.words import STOP_WORDS
from lrp4rag.claims.written import numbers_in
from lrp4rag.classifiers.folder import load_card
from lrp4rag.classifiers.verdict import Contradiction
from lrp4rag.data import load_examples, read_rows
from lrp4rag.example import Example
from lrp4rag.judge import Detector, ExplainedVerdict
from lrp4rag.training.corpus import ANNOTATED
from lrp4rag.training.sets import load_set
from lrp4rag.training.sets.edits import Edit, EditedQuestion, Replacement, edited
from lrp4rag.util.errors import InputError
from lrp4rag.util.files import write_atomically
from lrp4rag.util.progress import track

MINIMAL, EVIDENCE, EVERYDAY, RAGTRUTH = "pairs", "evidence", "everyday", "ragtruth"
HELD, HELD_EDITS = "held-out", "held-out-edits"
"""Sets of scores."""
FAITHFUL, ORIGINAL, UNAFFECTED = "faithful", "original", "unaffected"
"""Kinds of right answers: to passages as they were, and where an edit touches what they do not say."""
HARMLESS = ("harmless_1", "harmless_2", "harmless_3")
_WORD = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+")


class NamedValue(BaseModel):
    """A contradiction of a verdict: its characters in the response and in the passage; whether it lies in the
    wrong words, and whether the passage's value there is the right one."""

    model_config = ConfigDict(extra="forbid")

    start: int
    end: int
    passage: int
    passage_start: int
    passage_end: int
    inside: bool
    right: bool


class Score(BaseModel):
    """A labelled answer and its probability: a line of a raw file, without a text of the data.

    `source` is its question and `twin` the id of the right answer that a faulty one was made of. `words` and
    `novel` are the controls. `kinds` are those of all labels, where an answer has several. A probability is
    null where the answer states nothing.
    """

    id: str
    set: str
    kind: str
    label: Literal[0, 1]
    probability: float | None = Field(ge=0, le=1)
    source: str | None = None
    twin: str | None = None
    generator: str | None = None
    kinds: list[str] = []
    threshold: float | None = None
    abstained: bool = False
    contradictions: list[NamedValue] = []
    seconds: float | None = None
    words: int | None = None
    novel: float | None = None

    @property
    def question(self) -> str:
        """What resamples draw whole; of an id of the set everyday, what stands before the answer's number."""
        return self.source or re.split(r"[.~]", self.id)[0]

    @property
    def copied_from(self) -> str:
        return self.twin or (self.id.partition("~")[0] if "~" in self.id else "")


@dataclass(frozen=True, slots=True)
class Case:
    """An answer to judge. `is_right` says whether a contradiction names the right value."""

    example: Example
    kind: str
    twin: str | None
    is_right: Callable[[Contradiction], bool]

    def inside(self, value: Contradiction) -> bool:
        return any(value.start < label.end and label.start < value.end for label in self.example.labels or ())


COPIED = 0.8
"""How much of their words, in order, a copy and what it was made of have in common, at least (0 to 1)."""


def cases_of_pairs(items: Sequence[Item]) -> list[Case]:
    """Minimal pairs. The right value of a copy with a fault is what its faithful answer has there."""
    faithful: dict[str, list[Example]] = defaultdict(list)
    for item in items:
        if item.kind.startswith(FAITHFUL):
            faithful[item.example.source].append(item.example)
    cases = []
    for item in items:
        twin = _twin(item.example, faithful[item.example.source])

        def is_right(
            value: Contradiction, example: Example = item.example, twin: Example | None = twin
        ) -> bool:
            return twin is not None and has_value_of(twin.response or "", example.response or "", value)

        cases.append(Case(item.example, item.kind, twin.id if twin else None, is_right))
    return cases


def _twin(example: Example, faithful: Sequence[Example]) -> Example | None:
    """Return the faithful answer that a faulty one is a copy of; None for one that was written anew."""

    def shared(twin: Example) -> float:
        words, other = ((each.response or "").lower().split() for each in (example, twin))
        return SequenceMatcher(None, words, other, autojunk=False).ratio()

    twin = max(faithful, key=shared, default=None) if example.labels else None
    return twin if twin and shared(twin) >= COPIED else None


def has_value_of(twin: str, response: str, value: Contradiction) -> bool:
    """Say whether `value.instead` has the words that the twin has in the place of the contradicted ones, and
    none of those, or means the same value ("half a minute" for "30 seconds")."""
    places = [(match.start(), match.end()) for match in _WORD.finditer(response)]
    ours, theirs = (_WORD.findall(text.lower()) for text in (response, twin))
    expected = list[str]()
    for tag, first, last, start, end in SequenceMatcher(None, theirs, ours, autojunk=False).get_opcodes():
        touched = [k for k in range(start, end) if places[k][0] < value.end and value.start < places[k][1]]
        if tag == "equal":
            expected += [ours[k] for k in touched]
        elif touched:
            expected += theirs[first:last]
    wanted = _telling(expected)
    wrong = _telling(_WORD.findall(value.text.lower())) - wanted
    named = _telling(_WORD.findall(value.instead.lower()))
    if wanted and wanted <= named and not wrong & named:
        return True
    means = [find_values(text) for text in (" ".join(expected), value.instead, value.text)]
    meant, said, contradicted = (next(iter(values), None) for values in means)
    same = meant and said and agree(said, meant) and agree(meant, said)
    return bool(same and not (contradicted and meant and agree(contradicted, meant)))


def _telling(words: Sequence[str]) -> set[str]:
    """Return the words that tell a value: those with content, and numbers."""
    return {word for word in words if word not in STOP_WORDS or numbers_in(word)}


def cases_of_evidence(path: Path, items: Sequence[Item]) -> list[Case]:
    """Both faithful answers of each question, to its passages and to these with each edit; see
    `edited_cases`."""
    answers: dict[str, dict[str, Example]] = defaultdict(dict)
    for item in items:
        if item.kind.startswith(FAITHFUL):
            answers[item.example.source][item.kind] = item.example
    return edited_cases(path, answers)


def edited_cases(path: Path, answers: Mapping[str, Mapping[str, Example]]) -> list[Case]:
    """Faithful answers, by question and name, to the passages as they are and with each edit of the file. The
    right value is what was edited.

    Raises `InputError` naming the line for an edit of what is not there.
    """
    cases = list[Case]()
    for line, row in read_rows(path, EditedQuestion):
        own = answers.get(row.base, {})  # none of a question beyond a limit
        cases += [Case(example, ORIGINAL, None, lambda _: False) for example in own.values()]
        for edit in row.edits:
            cases += [_edited(example, name, edit, path, line) for name, example in own.items()]
    return cases


def _edited(example: Example, name: str, edit: Edit, path: Path, line: int) -> Case:
    wrong = name in edit.wrong
    answer = replace(example, id=f"{example.source}_{edit.kind}_{name}")
    case = edited(answer, name, edit, path, line)
    changed = [(each.passage, *_changed(case.passages[each.passage], each)) for each in edit.replacements]

    def is_right(value: Contradiction) -> bool:
        return any(
            value.passage == passage and value.passage_start < end and start < value.passage_end
            for passage, start, end in changed
        )

    kind = edit.kind if wrong or edit.kind in HARMLESS else UNAFFECTED
    return Case(case, kind, example.id if wrong else None, is_right)


def _changed(passage: str, replacement: Replacement) -> tuple[int, int]:
    """Return the characters of the edited passage that the edit changed, one at least."""
    old, new = replacement.old, replacement.new
    same = _shared(old, new)
    tail = _shared(old[same:][::-1], new[same:][::-1])
    start = passage.find(new) + same
    return start, start + max(len(new) - tail - same, 1)


def _shared(first: str, second: str) -> int:
    """Count the characters that both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


def judge_cases(
    detector: Detector,
    name: str,
    cases: Sequence[Case],
    path: Path,
    beside: Callable[[str], AbstractContextManager[None]] = lambda _: nullcontext(),
) -> None:
    """Judge the cases that a raw file lacks, prompt by prompt, and add their scores to it; each `beside` what
    its source needs."""
    scores = [score for _, score in read_rows(path, Score)] if path.exists() else []
    present = {score.id for score in scores}
    prompts: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        if case.example.id not in present:
            prompts[case.example.prompt].append(case)
    with detector:
        for group in track(prompts.values(), len(prompts), name):
            start = time.perf_counter()
            with beside(str(group[0].example.source)):
                verdicts = detector.judge_many([case.example for case in group], evidence=False)
            seconds = (time.perf_counter() - start) / len(group)
            pairs = zip(group, verdicts, strict=True)
            threshold = detector.card.threshold
            scores += [_score(name, case, verdict, threshold, seconds) for case, verdict in pairs]
            write_scores(path, scores)


def _score(name: str, case: Case, verdict: ExplainedVerdict, threshold: float, seconds: float) -> Score:
    words, novel = controls_of(case.example)
    fields = NamedValue.model_fields.keys() - {"inside", "right"}
    return Score(
        id=case.example.id,
        set=name,
        kind=case.kind,
        label=1 if case.example.labels else 0,
        probability=verdict.probability,
        source=case.example.source,
        twin=case.twin,
        threshold=threshold,
        abstained=verdict.abstained,
        contradictions=[
            NamedValue(
                **{field: getattr(value, field) for field in fields},
                inside=case.inside(value),
                right=case.is_right(value),
            )
            for value in verdict.contradictions
        ],
        seconds=round(seconds, 3),
        words=words,
        novel=round(novel, 5),
    )


def write_scores(path: Path, scores: Sequence[Score]) -> None:
    """Write a raw file, whole or not at all; fields that say nothing are left out."""
    lines = (json.dumps(score.model_dump(exclude_defaults=True), separators=(",", ":")) for score in scores)
    write_atomically(path, "".join(f"{line}\n" for line in lines))


class Fold(BaseModel):
    """A line of what `lrp4rag train --scores` writes."""

    id: str
    set: str
    probability: float


def scores_of_folds(path: Path, ragtruth: Path) -> Iterator[Score]:
    """Read the cross-validated scores of the bundled detector's training: of everyday, and of RAGTruth.

    Raises `InputError` for a response of none of both.
    """
    examples = {EVERYDAY: load_set(Path(EVERYDAY)), ANNOTATED: load_examples(ragtruth)}
    known = {(name, example.id): example for name, some in examples.items() for example in some}
    rows = [(line, row) for line, row in read_rows(path, Fold) if row.set in examples]
    threshold = load_card().threshold
    for name, shown in ((EVERYDAY, EVERYDAY), (ANNOTATED, RAGTRUTH)):
        found = [(known.get((name, row.id)), line, row.probability) for line, row in rows if row.set == name]
        for example, line, probability in found:
            if example is None:
                raise InputError("no response has this id", path=path, line=line, field="id")
            yield from out_of_fold(shown, [example], [probability], threshold)


def out_of_fold(
    name: str, examples: Sequence[Example], probabilities: Sequence[float], threshold: float | None = None
) -> Iterator[Score]:
    """Make the scores of labelled responses by cross-validation, each judged by a detector that did not learn
    from its source. A response's kind is that of its first label, or "faithful"."""
    for example, probability in zip(examples, probabilities, strict=True):
        kinds = list(dict.fromkeys(label.kind for label in example.labels or ()))
        words, novel = controls_of(example)
        yield Score(
            id=example.id,
            set=name,
            kind=kinds[0] if kinds else FAITHFUL,
            label=1 if kinds else 0,
            probability=round(float(probability), 6),
            source=example.source,
            generator=example.generator,
            kinds=kinds if len(kinds) > 1 else [],
            threshold=threshold,
            words=words,
            novel=round(novel, 5),
        )
