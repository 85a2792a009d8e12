"""`Case`: an answer, and the actions that are right; and the cases of the package, a file for each kind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, field_validator

from lrp4rag.data import PassageField, read_rows, refuse_duplicate
from lrp4rag.example import Example
from lrp4rag.guard.policy import Action
from lrp4rag.util.errors import InputError
from lrp4rag.util.hashes import json_hash
from lrp4rag.util.text import one_line

RISKS = {
    "no-document": "no relevant document",
    "conflict": "conflicting documents",
    "parametric-bypass": "parametric bypass",
    "authority-fabrication": "authority fabrication",
    "version-ambiguity": "version ambiguity",
}
"""Risks of answers from documents, by the name of the file of each."""
ATTACKS = {
    "injection": "prompt injection",
    "invisible-text": "homoglyphs and invisible text",
    "long-sentences": "very long sentences",
    "unending-text": "text that never ends",
    "code-blocks": "blocks of code",
    "tables": "tables",
    "mixed-languages": "mixed languages",
    "odd-citations": "citations in odd forms",
    "number-words": "values in words",
    "far-negations": "negations far from their verb",
    "true-elsewhere": "true, but not in the passages",
}
"""Attacks on the guardrail itself."""
KINDS = RISKS | ATTACKS
ALL = "all"
"""The name of all kinds together in a record."""
_FOLDER = Path(__file__).parent

Short = Annotated[str, Field(min_length=1, max_length=100)]


class Case(BaseModel):
    """A line of a file of cases. `expected` are the actions that are right, and `why` says so in words."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    id: Short
    kind: Short
    domain: Annotated[str, Field(max_length=100)] = ""
    question: str
    passages: Annotated[list[PassageField], Field(min_length=1)]
    response: str
    expected: Annotated[list[Action], Field(min_length=1)]
    why: str

    @field_validator("expected")
    @classmethod
    def _once(cls, actions: list[Action]) -> list[Action]:
        if len(set(actions)) < len(actions):
            raise ValueError("an action stands twice")
        return actions

    @field_validator("kind")
    @classmethod
    def _not_all(cls, kind: str) -> str:
        if kind == ALL:
            raise ValueError(f"'{ALL}' stands for every kind; give this one another name")
        return kind

    @property
    def harmless(self) -> bool:
        """Say whether the answer is right, so that it may be served as it is."""
        return "serve" in self.expected

    @property
    def hash(self) -> str:
        """Return a hash of everything in the case."""
        return json_hash(self.model_dump(mode="json"))[:16]

    def example(self) -> Example:
        """Return the case as an example. Raises `InputError` for a case that no guardrail could judge."""
        sources = (row.source for row in self.passages)
        return Example.of_sources(self.question, sources, self.response, id=self.id)


def load_cases(path: Path | None = None, *, kinds: Sequence[str] = ()) -> list[Case]:
    """Return the cases of a JSONL file, by default of all files of the package; of some `kinds` only, if any.
    Raises `InputError` with file, line and field, and for an unknown kind."""
    files = [path] if path is not None else [_FOLDER / f"{kind}.jsonl" for kind in KINDS]
    cases = [case for file in files for case in _read(file)]
    names = list(dict.fromkeys(case.kind for case in cases))
    for kind in kinds:
        if kind not in names:
            raise InputError(f"no cases of the kind '{one_line(kind, 60)}'; there are: {', '.join(names)}")
    return [case for case in cases if not kinds or case.kind in kinds]


def _read(path: Path) -> list[Case]:
    cases, lines = list[Case](), dict[str, tuple[str | Path, int]]()
    for line, case in read_rows(path, Case):
        refuse_duplicate(case.id, lines, path, line)
        try:
            case.example()
        except InputError as error:
            raise InputError(error.reason, path=path, line=line, field=error.field) from None
        cases.append(case)
    if not cases:
        raise InputError("no cases", path=path)
    return cases
