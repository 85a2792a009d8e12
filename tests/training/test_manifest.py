"""A manifest and the list of examples: changed by hand, damaged, or half-written by a killed process."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lrp4rag.example import Label
from lrp4rag.training import store as module
from lrp4rag.training.inventory import inventory
from lrp4rag.training.manifest import dump_examples
from lrp4rag.training.store import Store
from lrp4rag.util.errors import InputError, LRP4RAGWarning
from lrp4rag.util.strict_json import sealed
from tests.hostile.damage import replaced
from tests.test_damaged import PARTS, ROWS, STORE_READERS
from tests.training.jobs import contents
from tests.training.labelled import examples
from tests.training.stored import CONFIGURATION, store_of


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store whose files tests replace for a while."""
    return store_of(tmp_path_factory.mktemp("shared") / "s", ROWS, PARTS)


@pytest.fixture
def store(shared: Store, tmp_path: Path) -> Store:
    return replace(shared, folder=Path(shutil.copytree(shared.folder, tmp_path / "s")))


# The manifest.


def manifest_of(store: Store) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((store.folder / "manifest.json").read_text())
    return record


def require_refused(store: Store, record: dict[str, Any], name: str, match: str) -> None:
    with replaced(path := store.folder / name, json.dumps(record).encode()):
        for read in STORE_READERS:
            with pytest.raises(InputError, match=match) as caught:
                read(path)
            assert str(path) in str(caught.value)


FIELDS = ["format", "reader", "composite", "target", "truncation", "data", "coming", "sha256", "more"]
VALUES = [None, 0, 1, -1, 2.5, True, "", "x", "é" * 1000, [], ["x"], {}, {"x": 1}, [[[[[]]]]]]


@pytest.mark.parametrize("right", [True, False], ids=["right hash", "old hash"])
@pytest.mark.parametrize("field", [*FIELDS, *(f"reader.{name}" for name in (*CONFIGURATION.reader, "more"))])
def test_a_field_of_another_type(field: str, right: bool, shared: Store) -> None:
    path, record = shared.folder / "manifest.json", manifest_of(shared)
    inner = field.removeprefix("reader.")
    wanted = {"chat_template": bool, "more": type(...), "target": str}.get(inner, str)
    for value in VALUES:
        changed = record | {field: value}
        # A target is any text, and who notes nothing of examples says null, or nothing.
        fine = right and (
            field == "sha256"  # is replaced by the right one
            or (field == "target" and isinstance(value, str))
            or (field in ("data", "coming") and value is None)
        )
        if inner != field:
            changed = record | {"reader": record["reader"] | {inner: value}}
            fine = type(value) is wanted and (right or value == record["reader"].get(inner))
        with replaced(path, json.dumps(sealed(changed) if right else changed).encode()):
            for open_store in (Store.existing, lambda folder: Store.open(folder, CONFIGURATION)):
                if not fine:
                    with pytest.raises(InputError, match=r"manifest\.json"):
                        open_store(shared.folder)
            if fine:
                Store.existing(shared.folder)


def edited(record: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    """The record with other fields, also in its records; `...` takes a field away."""
    inner = {
        name: edited(record.get(name) or record["data"], value)
        for name, value in change.items()
        if isinstance(value, dict)
    }
    return {name: value for name, value in (record | change | inner).items() if value is not ...}


NOTED = [("examples", value) for value in (-1, "3", True, 3.5)]
NOTED += [("sha256", value) for value in ("g" * 64, "0" * 63, "0" * 64 + "\n", 3)]
NOTED += [("more", 3)]
REFUSED: list[tuple[dict[str, Any], str]] = [
    *(({name: ...}, "not a manifest.*it is missing") for name in ("reader", "composite", "target")),
    ({"truncation": ...}, "not a manifest.*it is missing"),
    ({"format": ...}, "format 3"),
    *(({"format": value}, "not a store of format 3; extract it again") for value in (2, 4, "3")),
    *(
        ({"reader": {name: ...}}, f"field 'reader': not a manifest: '{name}' must be a")
        for name in CONFIGURATION.reader
    ),
    *(
        ({noted: {field: value}}, f"field '{noted}.{field}'")
        for noted in ("data", "coming")
        for field, value in NOTED
    ),
    *(({"composite": value}, "not one of paper, attnlrp, cp_lrp") for value in ("lrp", "ATTNLRP")),
    ({"truncation": "question"}, "'error' or 'passages'"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED, ids=str)
def test_a_manifest_that_says_something_else(change: dict[str, Any], message: str, shared: Store) -> None:
    require_refused(shared, sealed(edited(manifest_of(shared), change)), "manifest.json", message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sha256": ...}, "not a manifest.*it is missing"),
        *(
            (change, "the manifest was changed or is damaged")
            for change in ({"composite": "paper"}, {"target": "largest"}, {"truncation": "passages"})
        ),
    ],
)
def test_a_manifest_that_was_changed_by_hand(change: dict[str, Any], message: str, shared: Store) -> None:
    require_refused(shared, edited(manifest_of(shared), change), "manifest.json", message)


def test_a_manifest_as_deep_as_python_can_follow(shared: Store) -> None:
    path = shared.folder / "manifest.json"
    for depth in range(880, 1000, 7):
        nested = "[" * depth + "]" * depth
        for text in (nested, f'{{"format": 3, "more": {nested}}}', f'{{"format": {nested}}}'):
            with replaced(path, text.encode()), pytest.raises(InputError, match=r"manifest\.json"):
                Store.existing(shared.folder)


# The examples.

EDITS: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "another label": lambda lines: [line.replace(b'"start":0', b'"start":1') for line in lines],
    "no labels": lambda lines: [line.replace(b'"labels":[]', b'"labels":null') for line in lines],
    "another response": lambda lines: [line.replace(b"opened", b"closed") for line in lines],
    "another id": lambda lines: [lines[0].replace(b"bridge-0", b"bridge-9"), *lines[1:]],
    "a line less": lambda lines: lines[1:],
    "a line twice": lambda lines: [*lines, lines[0]],
    "another order": lambda lines: lines[::-1],
    "a blank line": lambda lines: [*lines, b"\n"],
    "white space": lambda lines: [line.replace(b",", b", ") for line in lines],
    "gone": lambda lines: [],
}


@pytest.mark.parametrize("edit", EDITS)
def test_examples_that_were_edited_or_are_gone(edit: str, store: Store) -> None:
    path, whole = store.folder / "examples.jsonl", contents(store.folder)
    changed = b"".join(EDITS[edit](path.read_bytes().splitlines(keepends=True)))
    assert changed != path.read_bytes()
    path.write_bytes(changed)
    if edit == "gone":
        path.unlink()
    for read in STORE_READERS:
        with pytest.raises(InputError, match="missing" if edit == "gone" else "changed or damaged") as caught:
            read(path)
        assert str(path) in str(caught.value)
    assert path.exists() == (edit != "gone")
    message = rf"{path}: changed, damaged or missing; it is made anew of the 3"
    with pytest.warns(LRP4RAGWarning, match=message):
        store.add_examples(ROWS, rebuild=True)
    assert contents(store.folder) == whole


def test_examples_that_nothing_notes(tmp_path: Path) -> None:
    store = store_of(tmp_path / "s", [])
    path = store.folder / "examples.jsonl"
    path.write_bytes(dump_examples(ROWS))
    for read in STORE_READERS:
        with pytest.raises(InputError, match=r"examples\.jsonl: changed or damaged"):
            read(path)
    with pytest.warns(LRP4RAGWarning, match="made anew of the 0 responses"):
        store.add_examples([], rebuild=True)
    assert Store.existing(store.folder).examples() == []


class Killed(BaseException):
    pass


def add_and_die(store: Store, rows: list[Any], after: int, **options: bool) -> bool:
    """Add examples in a process that is killed after so many writes; whether it was."""
    write, written = module.write_atomically, []

    def limited(path: Path, content: bytes | str) -> None:
        if len(written) == after:
            raise Killed
        write(path, content)
        written.append(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "write_atomically", limited)
        patch.setattr("lrp4rag.training.manifest.write_atomically", limited)
        try:
            store.add_examples(rows, **options)
        except Killed:
            return True
    return False


MORE = [*examples(5)[3:], replace(ROWS[1], labels=(Label(0, 4),))]


@pytest.mark.parametrize("first", [[], ROWS], ids=["new store", "filled store"])
@pytest.mark.parametrize("after", [0, 1, 2, 3])
@pytest.mark.parametrize("then", ["the same", "nothing", "others"])
def test_a_process_killed_between_the_writes(first: list[Any], after: int, then: str, tmp_path: Path) -> None:
    """There is no moment at which the store counts as damaged, and the end is that of a run not killed."""
    store = store_of(tmp_path / "s", first)
    assert add_and_die(store, MORE, after) == (after < 3)
    held = Store.existing(store.folder).examples()
    # MORE has one of the first ones too, with another label.
    assert len(held) == (len(first) if after < 2 else 5 if first else 3)
    assert inventory(store.folder).examples == len(held)
    again = {"the same": MORE, "nothing": [], "others": examples(9)[7:]}[then]
    Store.open(store.folder, CONFIGURATION).add_examples(again)
    whole = store_of(tmp_path / "whole", [])
    whole.add_examples(first)
    if after >= 2:
        whole.add_examples(MORE)
    whole.add_examples(again)
    for name in ("manifest.json", "examples.jsonl"):
        if (whole.folder / name).exists():
            assert (store.folder / name).read_bytes() == (whole.folder / name).read_bytes()
    assert "coming" not in manifest_of(store)


def test_killed_again_and_again(tmp_path: Path) -> None:
    """Each time with other examples, after the file was renamed or before."""
    store = store_of(tmp_path / "s", ROWS)
    rows = examples(20)
    for k, after in enumerate([1, 2, 2, 1, 1, 2, 0, 2, 1]):
        assert add_and_die(store, rows[: 4 + k], after)
        held = Store.existing(store.folder).examples()
        assert held[:3] == ROWS
    store.add_examples(rows)
    assert store.examples() == rows


@pytest.mark.filterwarnings("ignore::lrp4rag.util.errors.LRP4RAGWarning")
@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_killed_as_damaged_examples_are_made_anew(after: int, store: Store) -> None:
    whole = contents(store.folder)
    (store.folder / "examples.jsonl").write_bytes(b"?")
    assert add_and_die(store, ROWS, after, rebuild=True) == (after < 3)
    store.add_examples(ROWS, rebuild=True)
    assert contents(store.folder) == whole


def test_processes_that_add_examples_at_once(tmp_path: Path) -> None:
    """None of them loses what another one added, and whoever reads meanwhile reads something whole."""
    store, rows, failed = store_of(tmp_path / "s", []), examples(24), []

    def add(part: int) -> None:
        try:
            for k in range(part, 24, 4):
                Store.open(store.folder, CONFIGURATION).add_examples([rows[k]])
                Store.existing(store.folder).examples()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=add, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert sorted(store.examples(), key=rows.index) == rows
