"""What the research code wrote and reads again, when it was damaged, changed, or is something else by now."""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks import precision, systems, verdict
from benchmarks.cells import Cells
from experiments.cli import COSTS, _forwards
from experiments.pages import claim
from experiments.paper.manifest import MANIFEST, begin, write
from experiments.systems.comparison import read_costs
from experiments.systems.scores import read_scores
from lrp4rag.util.errors import InputError
from tests.hostile.damage import NO_RECORD, put

# Files that users name, or that come from others: what each is called, and what reads it.

READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "scores": ("b.json.xz", read_scores),
    "costs": ("costs.json", read_costs),
    "costs of systems": ("costs.json", lambda path: systems.known_costs(path, "c")),
    "forwards": ("verdict.json", lambda path: _forwards(path, None)),
    "cells": ("cells.json", lambda path: Cells(path, {})),
}


def place(reader: str, folder: Path) -> Path:
    return folder / READERS[reader][0]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("content", NO_RECORD)
def test_a_damaged_file_is_named(reader: str, content: bytes, tmp_path: Path) -> None:
    path = place(reader, tmp_path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(content) if reader == "scores" else content)
    with pytest.raises(InputError) as caught:
        READERS[reader][1](path)
    assert caught.value.path is not None
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_not_waited_for(reader: str, kind: str, tmp_path: Path) -> None:
    path = put(place(reader, tmp_path), kind)
    with pytest.raises(InputError):
        READERS[reader][1](path)


COST = {"seconds": 1.0, "forwards": 2.0, "peak_bytes": 3}
FORWARDS = {f"{way}_over_forward": 2.0 for way in COSTS}
BAD_COSTS = [("seconds", -1), ("seconds", "fast"), *(("forwards", value) for value in (1e300, None, [1]))]
BAD_COSTS += [("peak_bytes", value) for value in (-1, 1.5, 10**30)]


@pytest.mark.parametrize(
    ("reader", "content", "message"),
    [
        *(
            ("costs", {"systems": {"a": COST | {name: value}}, "conditions": "c"}, r"systems\.a")
            for name, value in BAD_COSTS
        ),
        *(("costs", content, "not what python -m") for content in ({}, {"systems": []}, {"systems": {}})),
        ("costs", {"systems": {"a": []}, "conditions": ""}, "not what python -m"),
        *(
            ("forwards", FORWARDS | {"fast_over_forward": value}, "fast_over_forward")
            for value in (-1, 1e10, "2", None, [2])
        ),
        ("forwards", dict.fromkeys(("R_response_over_forward", "x"), 2.0), ""),
        *(("cells", content, "") for content in ({}, {"setup": {}}, {"setup": [], "cells": {}})),
        *(("cells", {"setup": {}, "cells": cells}, "") for cells in ([], {"a": 1})),
        ("cells", {"setup": None, "cells": None}, ""),
        ("cells", {"setup": {"gpu": 1}, "cells": {}}, "measured with gpu 1"),
    ],
    ids=str,
)
def test_records_of_another_shape(reader: str, content: object, message: str, tmp_path: Path) -> None:
    path = place(reader, tmp_path)
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=message or path.name):
        READERS[reader][1](path)


def test_whole_forwards_are_read(tmp_path: Path) -> None:
    (tmp_path / "verdict.json").write_text(json.dumps(FORWARDS))
    assert _forwards(tmp_path / "verdict.json", None) == dict.fromkeys(COSTS, 2.0)


# Outputs of the benchmarks, looked at before anything is measured.

COMMANDS: dict[str, tuple[Any, list[str]]] = {
    "precision": (precision.main, ["--out"]),
    "verdict": (verdict.main, ["--out"]),
    "systems": (systems.main, ["--store", ".", "--out"]),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", ["pipe", "nowhere"])
def test_a_benchmark_looks_at_its_output_first(command: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "no" / "out.json" if kind == "nowhere" else put(tmp_path / "out.json", kind)
    main, options = COMMANDS[command]
    result = CliRunner().invoke(main, [*options, str(path)])
    assert result.exit_code == 2
    assert "out.json" in result.output


# Folders of results.

OURS = {"kind": "python -m experiments reproduce"}

CLAIMS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "reproduce": (MANIFEST, lambda folder: claim(folder, "reproduce", MANIFEST)),
    "study": ("results.json", lambda folder: claim(folder, "study")),
    "compare": ("results.json", lambda folder: claim(folder, "compare")),
}


@pytest.mark.parametrize("command", CLAIMS)
def test_results_of_others_are_not_replaced(command: str, tmp_path: Path) -> None:
    record, claimed = CLAIMS[command]
    for name in ("README.md", "notes.md", "figure-2.png", "metrics.csv", "a.svg", record):
        path = tmp_path / name
        path.write_text("{}")
        with pytest.raises(InputError, match=rf"{command} did not write"):
            claimed(tmp_path)
        assert path.read_text() == "{}"
        path.unlink()
    (tmp_path / "README.md").write_text("mine")
    for content in (*NO_RECORD, b'{"kind": []}', b'{"kind": "lrp4rag"}'):
        (tmp_path / record).write_bytes(content)
        with pytest.raises(InputError, match="did not write"):
            claimed(tmp_path)


def test_what_a_command_wrote_or_never_writes_is_no_hindrance(tmp_path: Path) -> None:
    for folder in ("beside", "ours", "former"):
        (tmp_path / folder).mkdir()
    (tmp_path / "beside" / "costs.json").write_text("{}")
    (tmp_path / "beside" / "scores").mkdir()
    for folder, program in (("ours", "python -m experiments"), ("former", "lrp4rag experiments")):
        (tmp_path / folder / "results.json").write_text(json.dumps({"kind": f"{program} compare"}))
        (tmp_path / folder / "README.md").write_text("ours")
    for folder in ("deep/new", "beside", "ours", "former"):
        for _ in range(2):
            CLAIMS["compare"][1](tmp_path / folder)
        assert (tmp_path / folder).is_dir()


@pytest.mark.parametrize("command", CLAIMS)
def test_results_need_a_folder(command: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", put(tmp_path / "pipe", "pipe"), put(tmp_path / "link", "dangling link")):
        with pytest.raises(InputError):
            CLAIMS[command][1](path)


@pytest.mark.parametrize(
    "outputs",
    [
        None,
        3,
        "thesis.tex",
        ["thesis.tex", "../other.txt", ""],
        {"thesis.tex": 3, "../other.txt": None, "": 1, "..": 1, "/etc/passwd": 1, "a\x00": 1, "x" * 5000: 1},
        {"thesis.tex": "0" * 64, "\ud800": "0"},
    ],
)
def test_a_changed_manifest_deletes_nothing(outputs: object, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    for path in (folder / "thesis.tex", tmp_path / "other.txt"):
        path.write_text("years of work")
    (folder / MANIFEST).write_text(json.dumps(OURS | {"outputs": outputs}))
    earlier = claim(folder, "reproduce", MANIFEST)
    write(folder, OURS | {"outputs": {}}, earlier)
    assert (folder / "thesis.tex").read_text() == "years of work"
    assert (tmp_path / "other.txt").read_text() == "years of work"


def test_what_was_written_before_goes_unless_it_was_changed(tmp_path: Path) -> None:
    hashes = {}
    for name in ("old.csv", "changed.csv", "link.csv", "kept.csv"):
        (tmp_path / name).write_text(name)
        hashes[name] = hashlib.sha256(name.encode()).hexdigest()
    (tmp_path / MANIFEST).write_text(json.dumps(OURS | {"outputs": hashes}))
    earlier = claim(tmp_path, "reproduce", MANIFEST)
    (tmp_path / "changed.csv").write_text("years of work")
    (tmp_path / "link.csv").unlink()
    (tmp_path / "link.csv").symlink_to(tmp_path / "kept.csv")
    write(tmp_path, OURS | {"outputs": {"kept.csv": ""}}, earlier)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["changed.csv", "kept.csv", "link.csv", MANIFEST]


def test_a_run_that_was_killed_while_it_wrote_can_go_on(tmp_path: Path) -> None:
    claim(tmp_path, "reproduce", MANIFEST)
    begin(tmp_path)
    (tmp_path / "figure-2.png").write_bytes(b"half")
    assert claim(tmp_path, "reproduce", MANIFEST)["outputs"] == {}
