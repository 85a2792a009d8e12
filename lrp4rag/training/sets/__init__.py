"""Labelled data that comes with the package, or was fetched, by the name that commands know it by."""

from __future__ import annotations

from pathlib import Path

from lrp4rag.data import load_examples, load_ragtruth
from lrp4rag.example import Example
from lrp4rag.training.fetch import fetched_set
from lrp4rag.training.sets.edits import load_edited

_FOLDER = Path(__file__).parent
EVERYDAY, EVIDENCE = (_FOLDER / f"{name}.jsonl" for name in ("everyday", "everyday-evidence"))
RAGTRUTH = "ragtruth"
SETS = tuple(sorted(path.stem for path in _FOLDER.glob("*.jsonl")))


def set_path(data: str | Path) -> str | Path:
    """Return the file of a set, where `data` is its name and no file is there by that name; else `data`."""
    is_name = str(data) in SETS and not Path(data).exists()
    return _FOLDER / f"{data}.jsonl" if is_name else data


def load_set(data: str | Path) -> list[Example]:
    """Load a set by its name, or examples as `load_examples` does. `everyday-evidence` are the faithful
    answers of `everyday` to edited passages, and `ragtruth`, which has to be fetched first, are the responses
    to questions of its train split."""
    if str(data) == RAGTRUTH and not Path(data).exists():
        return load_ragtruth(fetched_set(RAGTRUTH), task="QA", split="train")
    path = set_path(data)
    if path != EVIDENCE:
        return load_examples(path)
    return list(load_edited(EVIDENCE, right_answers()))


def right_answers() -> dict[str, dict[str, Example]]:
    """Return the faithful answers of `everyday` by the question's id and their own name."""
    answers: dict[str, dict[str, Example]] = {}
    for example in load_examples(EVERYDAY):
        base, _, name = example.id.partition(".")
        if not example.labels:
            answers.setdefault(base, {})[name] = example
    return answers
