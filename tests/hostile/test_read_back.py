"""What the research code wrote and reads again, when it was damaged, changed, or is something else by now."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray

from benchmarks import gpu, precision, systems, verdict
from benchmarks.faithfulness.rows import CONFIGURATION, ROWS, Rows
from benchmarks.peers import run as peers
from benchmarks.peers.store import OtherSetupError, Store
from lrp4rag.errors import InputError
from lrp4rag.experiments.claim import claim
from lrp4rag.experiments.cli.study import COSTS, _forwards
from lrp4rag.experiments.paper.manifest import KIND, MANIFEST, claim_results, write
from lrp4rag.experiments.study.page import claim_page
from lrp4rag.experiments.systems.comparison.costs import read_costs
from lrp4rag.experiments.systems.comparison.scores import Scores
from lrp4rag.experiments.systems.kit import Choices, Kit
from lrp4rag.experiments.systems.trained import LESSONS, refuse_learned
from lrp4rag.training.cache import Cache, Cell
from lrp4rag.training.records import UNREADABLE, from_json
from tests.experiments.systems.test_kit import EXPECTED, Meter, lengths, measure
from tests.experiments.systems.test_kit import ROWS as EXAMPLES

DEEP = b"[" * 100_000
NO_JSON = [
    b"",
    b"{",
    b"\xff\xfe\x00",
    b"\x00",
    b"NaN",
    b'{"value": NaN}',
    b'{"value": 1e999}',
    b'{"a": 1, "a": 2}',
    DEEP,
    b'{"a":' * 100_000,
]
NO_RECORD = [*NO_JSON, b"null", b"[]", b"3", b'"text"', b"true"]
KINDS = ["folder", "full folder", "pipe", "dangling link", "loop"]


def put(path: Path, kind: str) -> None:
    """Something else than a file in its place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "dangling link":
        path.symlink_to(path.parent / "nothing")
    elif kind == "loop":
        path.symlink_to(path)
    else:
        path.mkdir()
        if kind == "full folder":
            (path / "thesis.tex").write_text("years of work")


# Cells.


def cell() -> Cell:
    return Cell({"what": "test"}, NDArray[np.float64], lambda: lambda: np.array([1.0, 2.0]))


NO_VALUE = [
    b"{}",
    b'{"value": [1.0]}',
    b'{"seconds": 1}',
    b'{"value": {"a": 1}, "seconds": 1}',
    b'{"value": "text", "seconds": 1}',
    b'{"value": [[1], 2], "seconds": 1}',
    b'{"value": [1.0], "seconds": "long"}',
    b'{"value": [1.0], "seconds": null}',
    b'{"value": [1.0], "seconds": true}',
    b'{"value": [1.0], "seconds": NaN}',
    b'{"value": ["x"], "seconds": 1}',
    b'{"value": null, "seconds": 1}',
]


@pytest.mark.parametrize("content", [*NO_RECORD, *NO_VALUE])
def test_a_damaged_cell_is_computed_again(content: bytes, tmp_path: Path) -> None:
    cache = Cache.open(tmp_path)
    cache.path(cell()).write_bytes(content)
    assert not cache.holds(cell())
    assert cache.seconds([cell()]) in (0, 1)
    assert cache.all([cell()], "test")[0].tolist() == [1, 2]
    assert Cache.open(tmp_path).read(cell()).tolist() == [1, 2]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "loop"])
def test_what_is_no_file_does_not_stop_a_cell(kind: str, tmp_path: Path) -> None:
    cache = Cache.open(tmp_path)
    put(cache.path(cell()), kind)
    assert cache.all([cell()], "test")[0].tolist() == [1, 2]
    assert Cache.open(tmp_path).read(cell()).tolist() == [1, 2]
    aside = [path for path in tmp_path.iterdir() if path.name.endswith(".aside")]
    assert len(aside) == 1
    if kind == "full folder":
        assert (aside[0] / "thesis.tex").read_text() == "years of work"
    cache.forget(cell())
    assert not Cache.open(tmp_path).holds(cell())


@pytest.mark.parametrize("kind", ["file", "dangling link"])
def test_a_cache_is_a_folder(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "cache"
    if kind == "file":
        path.write_text("mine")
    else:
        put(path, kind)
    with pytest.raises(InputError) as caught:
        Cache.open(path)
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (int, "1"),
        (int, 1.5),
        (int, True),
        (float, "1"),
        (float, [1]),
        (str, 1),
        (str, None),
        (bool, 1),
        (dict[str, int], [1]),
        (dict[str, int], {"a": "b"}),
        (tuple[int, ...], "12"),
        (tuple[int, ...], {"a": 1}),
        (tuple[int, int], [1]),
        (NDArray[np.float64], "12"),
        (NDArray[np.bool_], {"a": 1}),
    ],
)
def test_a_value_of_another_type_is_not_read(kind: Any, data: Any) -> None:
    with pytest.raises(UNREADABLE):
        from_json(kind, data)


@pytest.mark.parametrize("content", [*NO_JSON, b"3", b'"text"', b'{"numbers": "x"}', b'{"numbers": {}}'])
def test_a_damaged_measurement_is_made_again(content: bytes, tmp_path: Path) -> None:
    measure(Kit(tmp_path), Meter())
    for file in tmp_path.rglob("*.json"):
        file.write_bytes(content)
    assert lengths(measure(Kit(tmp_path), Meter())) == EXPECTED


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "loop"])
def test_what_is_no_file_does_not_stop_a_measurement(kind: str, tmp_path: Path) -> None:
    measure(Kit(tmp_path), Meter(), EXAMPLES[:1])
    for file in list(tmp_path.rglob("*.json")):
        put(file, kind)
    meter = Meter()
    assert lengths(measure(Kit(tmp_path), meter, EXAMPLES[:1])) == EXPECTED[:1]
    assert len(meter.groups) == 1
    assert lengths(measure(Kit(tmp_path), meter, EXAMPLES[:1])) == EXPECTED[:1]
    assert len(meter.groups) == 1


# Files that users name, or that come from others.


def _scores(path: Path) -> None:
    folder = Scores(path.parent, ("a",), 1)
    path.rename(folder.path("b"))
    try:
        folder.read("b", {})
    finally:
        folder.path("b").rename(path)


def _lessons(path: Path) -> None:
    path.rename(path.parent / LESSONS)
    try:
        refuse_learned(Choices(entailment=str(path.parent)), EXAMPLES)
    finally:
        (path.parent / LESSONS).rename(path)


def _rows(path: Path) -> None:
    folder = path.parent / "rows"
    Rows.open(folder, {"seed": 0})
    path.rename(folder / ROWS)
    try:
        Rows.open(folder, {"seed": 0})
    finally:
        (folder / ROWS).rename(path)


def _configuration(path: Path) -> None:
    folder = path.parent / "configured"
    folder.mkdir()
    path.rename(folder / CONFIGURATION)
    try:
        Rows.open(folder, {"seed": 0})
    finally:
        (folder / CONFIGURATION).rename(path)


READERS: dict[str, Callable[[Path], object]] = {
    "scores": _scores,
    "costs": read_costs,
    "lessons": _lessons,
    "forwards": _forwards,
    "systems": lambda path: systems.known_costs(path, "c"),
    "cells of peers": lambda path: Store(path, {}),
    "rows": _rows,
    "configuration": _configuration,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("content", NO_RECORD)
def test_a_damaged_file_is_named(reader: str, content: bytes, tmp_path: Path) -> None:
    if (reader, content) in (("rows", b""), ("lessons", b"[]")):
        return  # nothing is there yet
    path = tmp_path / "file.json"
    packed = lzma.compress(content) if reader == "scores" else content
    path.write_bytes(packed + b"\n" if reader == "rows" else packed)
    with pytest.raises(InputError) as caught:
        READERS[reader](path)
    assert caught.value.path is not None
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_not_waited_for(reader: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    put(path, kind)
    with pytest.raises(InputError):
        READERS[reader](path)


COST = {"seconds": 1.0, "forwards": 2.0, "peak_bytes": 3}


@pytest.mark.parametrize(
    "change",
    [
        {"seconds": -1},
        {"seconds": "fast"},
        {"forwards": 1e300},
        {"forwards": None},
        {"forwards": [1]},
        {"peak_bytes": -1},
        {"peak_bytes": 1.5},
        {"peak_bytes": 10**30},
    ],
)
def test_costs_are_numbers_within_reason(change: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    path.write_text(json.dumps({"systems": {"a": COST | change}, "conditions": "c"}))
    with pytest.raises(InputError, match=r"not what python -m benchmarks\.systems wrote") as caught:
        read_costs(path)
    assert "systems.a" in str(caught.value)


@pytest.mark.parametrize(
    "content", [{}, {"systems": []}, {"systems": {}}, {"systems": {"a": []}, "conditions": ""}]
)
def test_costs_have_systems_and_conditions(content: object, tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InputError):
        read_costs(path)


@pytest.mark.parametrize("value", [-1, 0, 1e9, "2", None, [2], True])
def test_forwards_are_numbers_within_reason(value: Any, tmp_path: Path) -> None:
    path = tmp_path / "verdict.json"
    whole = {f"{way}_over_forward": 2.0 for way in COSTS}
    path.write_text(json.dumps(whole))
    assert _forwards(path) == dict.fromkeys(COSTS, 2.0)
    path.write_text(json.dumps(whole | {"fast_over_forward": value}))
    with pytest.raises(InputError, match="fast_over_forward"):
        _forwards(path)


@pytest.mark.parametrize("content", [{"a": 1}, [1], [["a"]], [None], "a", 3])
def test_lessons_are_hashes(content: object, tmp_path: Path) -> None:
    (tmp_path / LESSONS).write_text(json.dumps(content))
    with pytest.raises(InputError, match="not a list of what a model learned from"):
        refuse_learned(Choices(token_classifier=str(tmp_path)), EXAMPLES)


def test_a_model_without_lessons_has_none(tmp_path: Path) -> None:
    refuse_learned(Choices(entailment="owner/model", token_classifier=str(tmp_path)), EXAMPLES)


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"setup": {}},
        {"setup": [], "cells": {}},
        {"setup": {}, "cells": []},
        {"setup": {}, "cells": {"a": 1}},
        {"setup": None, "cells": None},
    ],
)
def test_cells_of_peers_are_objects(content: object, tmp_path: Path) -> None:
    (tmp_path / "cells.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match="not measured cells"):
        Store(tmp_path / "cells.json", {})


def test_cells_of_another_setup_are_told_by_what_differs(tmp_path: Path) -> None:
    (tmp_path / "cells.json").write_text(json.dumps({"setup": {"gpu": 1}, "cells": {}}))
    with pytest.raises(OtherSetupError, match="another gpu"):
        Store(tmp_path / "cells.json", {})


@pytest.mark.parametrize(
    "line",
    [
        b"{}",
        b"[]",
        b"\xff",
        b'{"experiment": [], "sample": "a", "method": "m", "values": {}}',
        b'{"experiment": "e", "sample": "a", "method": "m", "values": 3}',
    ],
)
def test_a_damaged_row_is_named_with_its_line(line: bytes, tmp_path: Path) -> None:
    Rows.open(tmp_path, {}).add("e", "a", {"m": {"x": 1}})
    with (tmp_path / ROWS).open("ab") as stream:
        stream.write(line + b"\n")
    with pytest.raises(InputError) as caught:
        Rows.open(tmp_path, {})
    assert caught.value.line == 2


# Outputs of the benchmarks, looked at before anything is measured.

COMMANDS: dict[str, tuple[Any, list[str]]] = {
    "gpu": (gpu.main, ["--markdown"]),
    "precision": (precision.main, ["--markdown"]),
    "verdict": (verdict.main, ["--out"]),
    "systems": (systems.main, ["--store", ".", "--out"]),
    "peers": (peers.main, ["--out"]),
    "plot of peers": (peers.main, ["--scaling", "--plot"]),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", [*KINDS, "nowhere"])
def test_a_benchmark_looks_at_its_output_first(command: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    if kind == "nowhere":
        path = tmp_path / "no" / "folder" / "out.json"
    else:
        put(path, kind)
    main, options = COMMANDS[command]
    result = CliRunner().invoke(main, [*options, str(path)])
    assert result.exit_code == 2
    assert "out.json" in result.output


def test_a_damaged_file_of_costs_is_an_error_before_hours_of_work(tmp_path: Path) -> None:
    path = tmp_path / "costs.json"
    path.write_text('{"systems"')
    result = CliRunner().invoke(systems.main, ["--store", str(tmp_path), "--out", str(path)])
    assert result.exit_code == 1
    assert "costs.json: not what python -m benchmarks.systems wrote" in " ".join(result.output.split())
    assert path.read_text() == '{"systems"'


# Folders of results.

CLAIMS: dict[str, Callable[[Path], object]] = {
    "reproduce": claim_results,
    "study": claim_page,
    "compare": lambda folder: claim(folder, "lrp4rag experiments compare", "results.json"),
}
RECORDS = {"reproduce": MANIFEST, "study": "results.json", "compare": "results.json"}


@pytest.mark.parametrize("command", CLAIMS)
@pytest.mark.parametrize("name", ["README.md", "notes.md", "figure-2.png", "metrics.csv", "a.svg", "RECORD"])
def test_results_of_others_are_not_replaced(command: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / name.replace("RECORD", RECORDS[command])
    path.write_text("{}")
    with pytest.raises(InputError, match=f"lrp4rag {command} did not write"):
        CLAIMS[command](tmp_path)
    assert path.read_text() == "{}"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("command", CLAIMS)
@pytest.mark.parametrize("content", [*NO_RECORD, b'{"kind": []}', b'{"kind": "lrp4rag"}', b'{"command": 3}'])
def test_a_record_of_others_makes_no_folder_ours(command: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / RECORDS[command]).write_bytes(content)
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(InputError, match="did not write"):
        CLAIMS[command](tmp_path)


@pytest.mark.parametrize("command", CLAIMS)
def test_what_a_command_wrote_or_never_writes_is_no_hindrance(command: str, tmp_path: Path) -> None:
    for folder in ("new", "empty", "beside", "ours", "earlier"):
        (tmp_path / folder).mkdir()
    (tmp_path / "beside" / "costs.json").write_text("{}")
    (tmp_path / "beside" / "scores").mkdir()
    (tmp_path / "ours" / RECORDS[command]).write_text(json.dumps({"kind": f"lrp4rag {command}"}))
    (tmp_path / "ours" / "README.md").write_text("ours")
    (tmp_path / "earlier" / RECORDS[command]).write_text(
        json.dumps({"command": f"lrp4rag {command} --out x"})
    )
    (tmp_path / "earlier" / "README.md").write_text("ours")
    for folder in ("deep/new", "empty", "beside", "ours", "earlier"):
        CLAIMS[command](tmp_path / folder)
        CLAIMS[command](tmp_path / folder)
        assert (tmp_path / folder).is_dir()


@pytest.mark.parametrize("command", CLAIMS)
@pytest.mark.parametrize("kind", ["file", "pipe", "dangling link"])
def test_results_need_a_folder(command: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "out"
    if kind == "file":
        path.write_text("mine")
    else:
        put(path, kind)
    with pytest.raises(InputError):
        CLAIMS[command](path)


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
    (folder / MANIFEST).write_text(json.dumps({"kind": KIND, "outputs": outputs}))
    earlier = claim_results(folder)
    write(folder, {"kind": KIND, "outputs": {}}, earlier)
    assert (folder / "thesis.tex").read_text() == "years of work"
    assert (tmp_path / "other.txt").read_text() == "years of work"


def test_what_was_written_before_goes_unless_it_was_changed(tmp_path: Path) -> None:
    hashes = {}
    for name in ("old.csv", "changed.csv", "link.csv", "kept.csv"):
        (tmp_path / name).write_text(name)
        hashes[name] = hashlib.sha256(name.encode()).hexdigest()
    (tmp_path / MANIFEST).write_text(json.dumps({"kind": KIND, "outputs": hashes}))
    earlier = claim_results(tmp_path)
    (tmp_path / "changed.csv").write_text("years of work")
    (tmp_path / "link.csv").unlink()
    (tmp_path / "link.csv").symlink_to(tmp_path / "kept.csv")
    write(tmp_path, {"kind": KIND, "outputs": {"kept.csv": ""}}, earlier)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "changed.csv",
        "kept.csv",
        "link.csv",
        MANIFEST,
    ]


def test_a_run_that_was_killed_while_it_wrote_can_go_on(tmp_path: Path) -> None:
    claim_results(tmp_path)
    (tmp_path / "figure-2.png").write_bytes(b"half")
    assert claim_results(tmp_path) == {}
