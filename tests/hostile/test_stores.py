"""Stores whose files are whole and wrong: what is read is what was written, or an error names the file."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save_file

from lrp4rag.example import Label
from lrp4rag.features.parts import PROMPT, RELEVANCE
from lrp4rag.lrp.relevance import Relevance
from lrp4rag.training import store as module
from lrp4rag.training.export import export
from lrp4rag.training.inventory import inventory, merge
from lrp4rag.training.manifest import dump_examples
from lrp4rag.training.rows import Rows
from lrp4rag.training.store import Store, discard, write_arrays
from lrp4rag.util import tensors
from lrp4rag.util.errors import InputError, LRP4RAGError, LRP4RAGWarning
from lrp4rag.util.strict_json import sealed
from tests.hostile.damage import ANY_JSON, often, put, replaced
from tests.hostile.test_damaged import PARTS, ROWS, STORE_READERS, read_array
from tests.training.jobs import contents
from tests.training.labelled import examples
from tests.training.stored import CONFIGURATION, SIGNALS, store_of

AGAIN = "run lrp4rag extract again"

Copy = Callable[[Path], Store]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store that tests damage and mend."""
    return store_of(tmp_path_factory.mktemp("shared") / "s", ROWS, PARTS)


@pytest.fixture(scope="module")
def copy(shared: Store) -> Copy:
    """Copies it, which is faster than to make another."""
    return lambda folder: replace(shared, folder=Path(shutil.copytree(shared.folder, folder)))


@pytest.fixture
def store(copy: Copy, tmp_path: Path) -> Store:
    return copy(tmp_path / "s")


def require_damaged(store: Store, part: str, row: int = 0, match: str | None = AGAIN) -> None:
    path = store.path(ROWS[row], part)
    assert not store.holds(ROWS[row], part)
    with pytest.raises(InputError, match=match) as caught:
        store.read(ROWS[row]) if part == RELEVANCE else store.arrays(ROWS[row], part)
    assert str(path) in str(caught.value)


def opened(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    with safe_open(path, framework="numpy") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118


# Arrays under hashes, of which one or both are wrong.


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_what_is_no_number(part: str, value: float, store: Store) -> None:
    """Put in by hand, and by a program that got all hashes right."""
    path = store.path(ROWS[0], part)
    arrays, metadata = opened(path)
    name = next(name for name, array in arrays.items() if np.issubdtype(array.dtype, np.floating))
    arrays[name] = arrays[name].copy()
    arrays[name].flat[0] = value
    save_file(arrays, path, metadata=metadata)
    require_damaged(store, part, match=rf"'{name}' is not as it was written")
    ((kind, text),) = metadata.items()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tensors, "require_finite", lambda _: None)
        description = json.loads(text)
        tensors.write_tensors(path, kind, arrays, description["record"], description["name"])
    require_damaged(store, part, match=rf"'{name}' has NaN or Inf.*{AGAIN}")


def exchange(arrays: dict[str, np.ndarray]) -> None:
    one, two = sorted(name for name in arrays if name.startswith("l"))[:2]
    arrays[one], arrays[two] = arrays[two] + 1, arrays[one]


CHANGES: dict[str, Callable[[dict[str, np.ndarray]], object]] = {
    "one less": lambda arrays: arrays.pop(max(arrays)),
    "one more": lambda arrays: arrays.update(more=np.zeros(3, np.float16)),
    "renamed": lambda arrays: arrays.update(more=arrays.pop(max(arrays))),
    "exchanged": exchange,
    "another shape": lambda arrays: arrays.update(logits=arrays["logits"].reshape(1, -1)),
    "another type": lambda arrays: arrays.update(logits=arrays["logits"].view(np.int16)),
    "more precision": lambda arrays: arrays.update(logits=arrays["logits"].astype(np.float64)),
    "empty": lambda arrays: arrays.update(logits=arrays["logits"][:0]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_other_arrays_under_the_old_hashes(change: str, store: Store) -> None:
    path = store.path(ROWS[0], SIGNALS)
    arrays, metadata = opened(path)
    save_file(arrays, path, metadata=metadata)
    assert store.holds(ROWS[0], SIGNALS)
    CHANGES[change](arrays)
    save_file(arrays, path, metadata=metadata)
    require_damaged(store, SIGNALS)


@pytest.mark.parametrize("part", [RELEVANCE, SIGNALS])
def test_another_description(part: str, shared: Store) -> None:
    path = shared.path(ROWS[0], part)
    arrays, _ = opened(path)
    texts = ["", "{}", "[]", "3", "null", "{", "[" * 100_000, '{"format":2,"format":2}', '{"format": NaN}']
    # What can be parsed can be too deep to be written, and hashed, again.
    texts += ['{"format": 2, "record": ' + "[" * depth + "]" * depth + "}" for depth in range(900, 1000, 7)]
    described = [{kind: text} for kind in ("arrays", "relevance") for text in texts]
    for metadata in (None, {"other": "1"}, *described):
        with replaced(path, path.read_bytes()):
            save_file(arrays, path, metadata=metadata)
            require_damaged(shared, part)


@often
@given(data=st.data())
def test_a_description_of_any_json_with_the_right_hash(data: st.DataObject, shared: Store) -> None:
    """As a program writes it that knows everything but what belongs there."""
    part = data.draw(st.sampled_from([RELEVANCE, SIGNALS]))
    path = shared.path(ROWS[0], part)
    arrays, metadata = opened(path)
    ((kind, text),) = metadata.items()
    description = json.loads(text)
    place, value = data.draw(st.sampled_from(["whole", "record", "encoded"])), data.draw(ANY_JSON)
    if place == "whole" or part == SIGNALS:
        place = "whole"
        field = data.draw(st.sampled_from(["name", "record", "arrays"]))
        description[field] = value
    else:
        record = description["record"] if place == "record" else description["record"]["encoded"]
        record[data.draw(st.sampled_from(sorted(record)))] = value
    with replaced(path, path.read_bytes()):
        save_file(arrays, path, metadata={kind: json.dumps(sealed(description), sort_keys=True)})
        if place != "whole":
            with suppress(InputError):
                shared.read(ROWS[0])
        # Nothing else is known of the arrays, so any record of theirs will do.
        elif not (part == SIGNALS and field == "record" and isinstance(value, dict)):
            require_damaged(shared, part, match=None)


# Files in the place of others.


@pytest.mark.parametrize("part", PARTS)
def test_the_file_of_another_example_or_part(part: str, store: Store) -> None:
    one, two = store.path(ROWS[0], part), store.path(ROWS[1], part)
    one.rename(one.with_name("third"))
    two.rename(one)
    one.with_name("third").rename(two)
    for row in (0, 1):
        require_damaged(store, part, row, match=rf"written as {part}/[0-9a-f]+.*{AGAIN}")
    assert store.holds(ROWS[2], part)
    for other in set(PARTS) - {part}:
        store.path(ROWS[2], part).write_bytes(store.path(ROWS[2], other).read_bytes())
        require_damaged(store, part, 2)


def test_a_file_that_was_written_outside_of_a_store(store: Store) -> None:
    path = store.path(ROWS[0])
    Relevance.load(path).save(path)
    require_damaged(store, RELEVANCE, match="written as None")
    write_arrays(store.path(ROWS[0], PROMPT), {"prompt": np.ones(4)})
    require_damaged(store, PROMPT, match="written as None")


def test_a_link_to_a_whole_file_is_whole_and_to_a_damaged_one_is_not(store: Store, tmp_path: Path) -> None:
    """Who is short of disk space moves files elsewhere."""
    path, elsewhere = store.path(ROWS[0]), tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    read_array(RELEVANCE, path)
    elsewhere.write_bytes(elsewhere.read_bytes()[:-1])
    require_damaged(store, RELEVANCE)
    discard(path)
    assert elsewhere.exists()
    assert not store.has(ROWS[0])


def test_only_what_is_read_is_checked_and_that_is(store: Store) -> None:
    path = store.path(ROWS[0], SIGNALS)
    arrays, metadata = opened(path)
    arrays["entropy"] = arrays["entropy"] + 1
    save_file(arrays, path, metadata=metadata)
    assert store.arrays(ROWS[0], SIGNALS, ["logprob"])["logprob"].any()
    with pytest.raises(InputError, match="'entropy' is not as it was written"):
        store.arrays(ROWS[0], SIGNALS, ["logprob", "entropy"])
    assert not store.holds(ROWS[0], SIGNALS)


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
    *(({name: ...}, "not a manifest.*Field required") for name in ("reader", "composite", "target")),
    ({"truncation": ...}, "not a manifest.*Field required"),
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
        ({"sha256": ...}, "not a manifest.*Field required"),
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


# Merging, and what else reads all files.

DAMAGES = ["cut", "swapped", "pipe", "folder", "dangling link"]


def damage(store: Store, *rows: int, part: str = RELEVANCE, kind: str = "cut") -> None:
    for row in rows:
        path = store.path(ROWS[row], part)
        if kind == "cut":
            path.write_bytes(path.read_bytes()[:50])
        elif kind == "swapped":
            path.write_bytes(store.path(ROWS[1], part).read_bytes())
        else:
            put(path, kind)


@pytest.mark.parametrize("kind", DAMAGES)
@pytest.mark.parametrize("part", [RELEVANCE, SIGNALS])
def test_a_whole_file_is_taken_over_a_damaged_one(part: str, kind: str, copy: Copy, tmp_path: Path) -> None:
    whole, broken = (copy(tmp_path / name) for name in ("whole", "broken"))
    damage(broken, 0, part=part, kind=kind)
    for order in (1, -1):
        out = tmp_path / f"out{order}"
        assert merge([whole.folder, broken.folder][::order], out) == len(PARTS) * 3
        assert contents(out) == contents(whole.folder)
    if kind == "folder":  # it may hold what a user put there
        with pytest.raises(InputError, match="this is a folder"):
            merge([whole.folder], broken.folder)
    else:
        assert merge([whole.folder], broken.folder) == 1
        assert contents(broken.folder) == contents(whole.folder)


@pytest.mark.parametrize("kind", DAMAGES)
@pytest.mark.parametrize("order", [1, -1])
def test_what_is_damaged_everywhere_is_named_after_all_else_was_copied(
    order: int, kind: str, shared: Store, copy: Copy, tmp_path: Path
) -> None:
    one, two = (copy(tmp_path / name) for name in ("one", "two"))
    damage(one, 0, 2)
    damage(two, 0, 2, kind=kind)
    damage(one, 1, part=SIGNALS)
    out = tmp_path / "out"
    with pytest.raises(LRP4RAGError, match="2 files are damaged wherever there is one") as caught:
        merge([one.folder, two.folder][::order], out)
    first = (one, two)[::order][0]
    assert str(first.path(ROWS[0])) in str(caught.value) or str(first.path(ROWS[2])) in str(caught.value)
    merged = Store.existing(out)
    assert merged.examples() == ROWS
    lacking = {(row.id, part) for row in ROWS for part in PARTS if not merged.holds(row, part)}
    assert lacking == {(ROWS[0].id, RELEVANCE), (ROWS[2].id, RELEVANCE)}
    assert sum(inventory(out).damaged.values()) == 0
    assert merge([shared.folder, one.folder], out) == 2


def test_what_only_the_merged_store_has_and_has_damaged_is_named(tmp_path: Path) -> None:
    one, out = store_of(tmp_path / "one", ROWS[1:]), store_of(tmp_path / "out", ROWS)
    damage(out, 0)
    with pytest.raises(LRP4RAGError, match="1 file is damaged") as caught:
        merge([one.folder], out.folder)
    assert str(out.path(ROWS[0])) in str(caught.value)


def test_merging_leaves_its_sources_alone(tmp_path: Path) -> None:
    one, two = (store_of(tmp_path / name, ROWS) for name in ("one", "two"))
    left = one.folder / f".lrp4rag-00000000-{10**10 - 1}-{'a' * 16}.tmp"
    left.write_text("of another machine")
    os.utime(left, (0, 0))
    before = [contents(store.folder) for store in (one, two)]
    merge([one.folder, two.folder], tmp_path / "out")
    assert [contents(store.folder) for store in (one, two)] == before


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("kind", ["cut", "pipe", "folder"])
def test_what_is_damaged_is_counted_and_neither_exported_nor_trained_on(
    part: str, kind: str, store: Store, tmp_path: Path
) -> None:
    assert inventory(store.folder).damaged == dict.fromkeys(PARTS, 0)
    damage(store, 0, 1, part=part, kind=kind)
    found = inventory(store.folder)
    assert found.damaged == {name: 2 * (name == part) for name in PARTS}
    paths = {str(store.path(ROWS[k], part)) for k in (0, 1)}
    assert found.first_damaged in paths
    readers = [lambda: export(store.folder, tmp_path / "table.parquet")]
    if part != "sentences":
        readers.append(lambda: [*Rows.open(store.folder).records()])
    for read in readers:
        with pytest.raises(InputError) as caught:
            read()
        assert any(path in str(caught.value) for path in paths)
    assert not list(tmp_path.glob("*.parquet")) + list(tmp_path.glob(".lrp4rag*"))
    if kind != "folder":
        discard(store.path(ROWS[0], part))
        assert not store.has(ROWS[0], part)
