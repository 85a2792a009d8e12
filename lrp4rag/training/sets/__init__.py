"""Labelled data that comes with the package, by the name that `lrp4rag train --more` knows it by."""

from __future__ import annotations

from pathlib import Path

from lrp4rag.data import load_examples
from lrp4rag.example import Example
from lrp4rag.training.sets.edits import load_edited

EVIDENCE = "everyday-evidence"
_FOLDER = Path(__file__).parent
SETS = tuple(sorted(path.stem for path in _FOLDER.glob("*.jsonl")))


def set_path(given: Path) -> Path:
    """Return the file of a set, where its name is given and no file is there by that name; else the same
    path."""
    return _FOLDER / f"{given}.jsonl" if str(given) in SETS and not given.exists() else given


def load_set(given: Path) -> list[Example]:
    """Load a set by its name, or the labelled examples of a file. `everyday-evidence` are the faithful
    answers of `everyday` to edited passages."""
    path = set_path(given)
    if path.parent != _FOLDER or path.stem != EVIDENCE:
        return load_examples(path)
    answers: dict[str, dict[str, Example]] = {}
    for example in load_examples(_FOLDER / f"{EVIDENCE.partition('-')[0]}.jsonl"):
        base, _, name = example.id.partition(".")
        if not example.labels:
            answers.setdefault(base, {})[name] = example
    return list(load_edited(path, answers))
