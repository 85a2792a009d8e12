"""One place prints, one writes, one parses JSON and one loads models: what else would is found here."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = sorted([*(ROOT / "lrp4rag").rglob("*.py"), *(ROOT / "experiments").rglob("*.py")])
BESIDE = sorted([*(ROOT / "benchmarks").rglob("*.py"), *(ROOT / "notebooks").rglob("*.py")])


@cache
def calls(path: Path) -> frozenset[str]:
    """The last parts of what is called: "click.echo", "print", "?.write_text"."""
    names = set[str]()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            function = node.func
            if isinstance(function, ast.Name):
                names.add(function.id)
            elif isinstance(function, ast.Attribute):
                owner = function.value.id if isinstance(function.value, ast.Name) else "?"
                names.add(f"{owner}.{function.attr}")
    return frozenset(names)


def callers(*names: str, files: Sequence[Path] = PACKAGE) -> set[str]:
    """The files, by default of package and research, that call one of these; "?.name" is the method of
    anything."""
    return {
        path.relative_to(ROOT).as_posix()
        for path in files
        for name in calls(path)
        if name in names or f"?.{name.split('.')[-1]}" in names
    }


def test_only_the_terminal_prints() -> None:
    # The second prints help, as click does.
    printing = callers("print", "?.print_json", "?.echo", "?.secho", "?.Console", "Console")
    assert printing <= {"lrp4rag/util/terminal.py", "lrp4rag/cli/command.py"}
    for path in PACKAGE:
        source = path.read_text(encoding="utf-8")
        assert not re.search(r"std(out|err)\.write|from rich import print|rich\.print\(", source), path.name


def test_only_one_place_loads_models() -> None:
    # An adapter of LoRA has no code, and its loader knows no such option.
    assert callers("?.from_pretrained", "?.from_config", files=[*PACKAGE, *BESIDE]) == {
        "lrp4rag/reader/weights.py",
        "experiments/systems/finetuned.py",
    }


def test_only_one_place_parses_json() -> None:
    parsers = callers("json.loads", "json.load")
    # The second asks whether a line is JSON at all; the others read what they have just written.
    assert parsers <= {
        "lrp4rag/util/strict_json.py",
        "lrp4rag/data.py",
        "experiments/systems/scores.py",
        "lrp4rag/guard/cluster/workers.py",
    }


def test_nothing_is_unpickled() -> None:
    assert not callers("pickle.load", "pickle.loads", "joblib.load", "torch.load", "?.read_pickle", "eval")
    for path in PACKAGE:
        source = path.read_text(encoding="utf-8")
        assert "allow_pickle=True" not in source
        assert "trust_remote_code=True" not in source


def test_only_one_place_writes() -> None:
    # Two write into hidden folders that are renamed into place, one into the text of a help page, one makes
    # a key with its permissions.
    assert callers("?.write_text", "?.write_bytes", "open") <= {
        "lrp4rag/util/files.py",
        "lrp4rag/cli/command.py",
        "lrp4rag/guard/audit/chain.py",
        "lrp4rag/classifiers/folder.py",
        "lrp4rag/reader/weights.py",
    }
    assert callers("?.savefig") == {"experiments/figures/text.py", "lrp4rag/report/figure_text.py"}
    assert not callers("?.mkdtemp", "mkdtemp")
    assert callers("?.rmtree") <= {"lrp4rag/util/files.py", "lrp4rag/reader/weights.py"}
