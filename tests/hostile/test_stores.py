"""Stores that were damaged in every way we could think of: what is read is what was written, or an error that
names the file. Nothing hangs, and nothing is a traceback."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save_file

from lrp4rag import tensors
from lrp4rag.errors import InputError, LRP4RAGError, LRP4RAGWarning
from lrp4rag.example import Label
from lrp4rag.features.parts import PROMPT, RELEVANCE, SENTENCES, SIGNALS
from lrp4rag.lrp.relevance import Relevance
from lrp4rag.strict_json import sealed
from lrp4rag.training import store as module
from lrp4rag.training.arrays import write_arrays
from lrp4rag.training.examples import dump_examples
from lrp4rag.training.export import export
from lrp4rag.training.inventory import inventory, merge
from lrp4rag.training.rows import Rows
from lrp4rag.training.store import Store, discard, is_whole
from tests.training.jobs import contents
from tests.training.labelled import examples
from tests.training.stored import CONFIGURATION, store_of

ROWS = examples(3)
PARTS = (RELEVANCE, SIGNALS, PROMPT, SENTENCES, "matrix-3x2")
KINDS = (RELEVANCE, SIGNALS)
"""A file of `Relevance.save`, and one of `write_arrays`: all others are like the latter."""

Copy = Callable[[Path], Store]

often = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))


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


@pytest.fixture(autouse=True)
def _nothing_hangs() -> Iterator[None]:
    """Whoever waits for the other end of a pipe waits forever."""

    def interrupt(*_: object) -> None:
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@contextmanager
def replaced(path: Path, content: bytes) -> Iterator[None]:
    """The file with another content, for a while."""
    before = path.read_bytes()
    path.write_bytes(content)
    try:
        yield
    finally:
        path.write_bytes(before)


def read(store: Store, row: int, part: str) -> object:
    example = store.examples()[row]
    return store.read(example) if part == RELEVANCE else store.arrays(example, part)


def require_damaged(
    store: Store, part: str, row: int = 0, match: str | None = "run lrp4rag extract again"
) -> None:
    """Whoever reads the file is told its name and what to do; whoever asks whether it is held is told no."""
    path = store.path(ROWS[row], part)
    assert not store.holds(ROWS[row], part)
    assert not is_whole(path)
    with pytest.raises(InputError, match=match) as caught:
        read(store, row, part)
    assert str(path) in str(caught.value)


def header_end(content: bytes) -> int:
    return 8 + int.from_bytes(content[:8], "little")


def flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def opened(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    with safe_open(path, framework="numpy") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118


# Arrays: bits, bytes, numbers.


@pytest.mark.parametrize("part", KINDS)
@pytest.mark.parametrize("place", ["length", "header", "data"])
def test_a_flipped_bit(part: str, place: str, shared: Store) -> None:
    path = shared.path(ROWS[0], part)
    whole = path.read_bytes()
    end = header_end(whole)
    start, stop = {"length": (0, 8), "header": (8, end), "data": (end, len(whole))}[place]
    bits = range(8 * start, 8 * stop, max(1, 8 * (stop - start) // 60) | 1)
    assert len(bits) > 30
    for bit in bits:
        with replaced(path, flipped(whole, bit)):
            require_damaged(shared, part, match=r"extract again|compute it again")
    assert shared.holds(ROWS[0], part)


@often
@given(part=st.sampled_from(PARTS), row=st.integers(0, 2), place=st.floats(0, 1, exclude_max=True))
def test_any_flipped_bit(part: str, row: int, place: float, shared: Store) -> None:
    path = shared.path(ROWS[row], part)
    whole = path.read_bytes()
    with replaced(path, flipped(whole, int(place * 8 * len(whole)))):
        require_damaged(shared, part, row, match=r"extract again|compute it again")


@often
@given(part=st.sampled_from(KINDS), data=st.data())
def test_any_bytes_in_the_place_of_others(part: str, data: st.DataObject, shared: Store) -> None:
    path = shared.path(ROWS[0], part)
    whole = path.read_bytes()
    start = data.draw(st.integers(0, len(whole)))
    stop = data.draw(st.integers(start, min(len(whole), start + 64)))
    content = whole[:start] + data.draw(st.binary(max_size=64)) + whole[stop:]
    with replaced(path, content):
        assert shared.holds(ROWS[0], part) == (content == whole)
        if content != whole:
            require_damaged(shared, part, match=r"extract again|compute it again")


@pytest.mark.parametrize("part", KINDS)
@pytest.mark.parametrize("kept", [0, 1, 7, 8, 9, 100, "half", "the header", -16, -1])
def test_a_truncated_file(part: str, kept: int | str, shared: Store) -> None:
    path = shared.path(ROWS[0], part)
    whole = path.read_bytes()
    length = {"half": len(whole) // 2, "the header": header_end(whole)}.get(str(kept), kept)
    with replaced(path, whole[:length]):
        require_damaged(shared, part)


@pytest.mark.parametrize("part", KINDS)
@pytest.mark.parametrize(
    "content",
    [b"x", b"\0" * 8, b"hello, this is text", b"\xff" * 64, b"PK\x03\x04" + b"\0" * 90, b"\0" * 10_000],
)
def test_a_longer_file_and_others(part: str, content: bytes, shared: Store) -> None:
    path = shared.path(ROWS[0], part)
    for changed in (content, path.read_bytes() + content):
        with replaced(path, changed):
            require_damaged(shared, part)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
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
    require_damaged(store, part, match=rf"'{name}' has NaN or Inf.*run lrp4rag extract again")


def without(arrays: dict[str, np.ndarray]) -> None:
    del arrays[max(arrays)]


def with_another(arrays: dict[str, np.ndarray]) -> None:
    arrays["more"] = np.zeros(3, np.float16)


def renamed(arrays: dict[str, np.ndarray]) -> None:
    arrays["more"] = arrays.pop(max(arrays))


def exchanged(arrays: dict[str, np.ndarray]) -> None:
    one, two = sorted(name for name in arrays if name.startswith("l"))[:2]
    arrays[one], arrays[two] = arrays[two] + 1, arrays[one]


def of_another_shape(arrays: dict[str, np.ndarray]) -> None:
    arrays["logits"] = arrays["logits"].reshape(1, -1)


def of_another_type(arrays: dict[str, np.ndarray]) -> None:
    """The same bytes."""
    arrays["logits"] = arrays["logits"].view(np.int16)


def of_more_precision(arrays: dict[str, np.ndarray]) -> None:
    arrays["logits"] = arrays["logits"].astype(np.float64)


def empty(arrays: dict[str, np.ndarray]) -> None:
    arrays["logits"] = arrays["logits"][:0]


@pytest.mark.parametrize(
    "change",
    [
        *(without, with_another, renamed, exchanged),
        *(of_another_shape, of_another_type, of_more_precision, empty),
    ],
)
def test_other_arrays_under_the_old_hashes(change: Callable[[dict], None], store: Store) -> None:
    path = store.path(ROWS[0], SIGNALS)
    arrays, metadata = opened(path)
    save_file(arrays, path, metadata=metadata)
    assert store.holds(ROWS[0], SIGNALS)
    change(arrays)
    save_file(arrays, path, metadata=metadata)
    require_damaged(store, SIGNALS)


@pytest.mark.parametrize("part", KINDS)
@pytest.mark.parametrize(
    "metadata",
    [
        None,
        {"other": "1"},
        *({kind: text} for kind in ("arrays", "relevance") for text in ("", "{}", "[]", "3", "null", "{")),
        *({kind: "[" * 100_000} for kind in ("arrays", "relevance")),
        *({kind: '{"format":2,"format":2}'} for kind in ("arrays", "relevance")),
        *({kind: '{"format": NaN}'} for kind in ("arrays", "relevance")),
    ],
    ids=lambda metadata: str(metadata)[:40],
)
def test_another_description(part: str, metadata: dict[str, str] | None, shared: Store) -> None:
    path = shared.path(ROWS[0], part)
    arrays, _ = opened(path)
    with replaced(path, path.read_bytes()):
        save_file(arrays, path, metadata=metadata)
        require_damaged(shared, part)


@pytest.mark.parametrize("depth", range(900, 1000, 7))
def test_a_description_as_deep_as_python_can_follow(depth: int, shared: Store) -> None:
    """What can be parsed can be too deep to be written, and hashed, again."""
    path = shared.path(ROWS[0], SIGNALS)
    with replaced(path, path.read_bytes()):
        text = '{"format": 2, "record": ' + "[" * depth + "]" * depth + "}"
        save_file({"x": np.zeros(1)}, path, metadata={"arrays": text})
        require_damaged(shared, SIGNALS)


ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=5), inside, max_size=3),
    max_leaves=6,
)


@often
@given(part=st.sampled_from(KINDS), field=st.sampled_from(["name", "record", "arrays"]), value=ANY)
def test_a_description_of_any_json_with_the_right_hash(
    part: str, field: str, value: object, shared: Store
) -> None:
    """As a program writes it that knows everything but what belongs there."""
    path = shared.path(ROWS[0], part)
    arrays, metadata = opened(path)
    ((kind, text),) = metadata.items()
    description = sealed(json.loads(text) | {field: value})
    with replaced(path, path.read_bytes()):
        save_file(arrays, path, metadata={kind: json.dumps(description, sort_keys=True)})
        # Nothing else is known of the arrays, so any record of theirs will do.
        if not (part == SIGNALS and field == "record" and isinstance(value, dict)):
            require_damaged(shared, part, match=None)


@often
@given(data=st.data())
def test_a_record_of_any_json_with_the_right_hash(data: st.DataObject, shared: Store) -> None:
    path = shared.path(ROWS[0])
    arrays, metadata = opened(path)
    description = json.loads(metadata["relevance"])
    record = description["record"]
    if data.draw(st.booleans()):
        record = record["encoded"]
    record[data.draw(st.sampled_from(sorted(record)))] = data.draw(ANY)
    with replaced(path, path.read_bytes()):
        save_file(arrays, path, metadata={"relevance": json.dumps(sealed(description), sort_keys=True)})
        with suppress(InputError):
            shared.read(ROWS[0])


# Files in the place of others.


@pytest.mark.parametrize("part", PARTS)
def test_files_of_two_examples_exchanged(part: str, store: Store) -> None:
    one, two = store.path(ROWS[0], part), store.path(ROWS[1], part)
    one.rename(one.with_name("third"))
    two.rename(one)
    one.with_name("third").rename(two)
    for row in (0, 1):
        require_damaged(store, part, row, match=rf"written as {part}/[0-9a-f]+.*run lrp4rag extract again")
    assert store.holds(ROWS[2], part)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("other", PARTS)
def test_the_file_of_another_part(part: str, other: str, store: Store) -> None:
    if part != other:
        store.path(ROWS[0], part).write_bytes(store.path(ROWS[0], other).read_bytes())
        require_damaged(store, part)


def test_a_file_that_was_written_outside_of_a_store(store: Store) -> None:
    path = store.path(ROWS[0])
    Relevance.load(path).save(path)
    require_damaged(store, RELEVANCE, match="written as None")
    write_arrays(store.path(ROWS[0], PROMPT), {"prompt": np.ones(4)})
    require_damaged(store, PROMPT, match="written as None")


@pytest.mark.parametrize("part", KINDS)
@pytest.mark.parametrize("kind", ["pipe", "folder", "socket", "link to nothing", "loop", "link to a device"])
def test_what_is_no_file(part: str, kind: str, copy: Copy, tmp_path_factory: pytest.TempPathFactory) -> None:
    store = copy(tmp_path_factory.mktemp("s") / "s")
    folder, path = store.folder, store.path(ROWS[0], part)
    path.unlink()
    put_in_place(path, kind)
    assert not store.holds(ROWS[0], part)
    for attempt in (
        lambda: read(store, 0, part),
        lambda: [*Rows.open(folder).records()],
        lambda: export(folder, folder / "table.parquet"),
    ):
        with pytest.raises(InputError) as caught:
            attempt()
        assert str(path) in str(caught.value)
    assert inventory(folder).damaged == {name: int(name == part) for name in PARTS}
    if kind != "folder":
        discard(path)
        assert not store.has(ROWS[0], part)


def put_in_place(path: Path, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        import socket

        before = Path.cwd()
        os.chdir(path.parent)  # the names of sockets are short
        try:
            with socket.socket(socket.AF_UNIX) as bound:
                bound.bind(path.name)
        finally:
            os.chdir(before)
    else:
        targets = {"link to nothing": "nowhere", "loop": path.name, "link to a device": "/dev/zero"}
        path.symlink_to(targets[kind])


def test_a_link_to_a_whole_file_is_whole_and_to_a_damaged_one_is_not(store: Store, tmp_path: Path) -> None:
    """Who is short of disk space moves files elsewhere."""
    path, elsewhere = store.path(ROWS[0]), tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    assert store.holds(ROWS[0])
    assert store.read(ROWS[0]).response.tolist() == [0.25] * len(ROWS[0].response.split(" "))
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


def require_refused(folder: Path, match: str | None = None) -> None:
    for attempt in (
        lambda: Store.existing(folder),
        lambda: Store.open(folder, CONFIGURATION),
        lambda: inventory(folder),
        lambda: Rows.open(folder),
        lambda: merge([folder], folder.parent / "out"),
        lambda: merge([store_of(folder.parent / "other", []).folder], folder),
    ):
        with pytest.raises(InputError, match=match) as caught:
            attempt()
        assert str(folder / "manifest.json") in str(caught.value)
    assert not (folder.parent / "out").exists()


VALUES = [None, 0, 1, -1, 2.5, True, "", "x", "é" * 1000, [], ["x"], {}, {"x": 1}, [[[[[]]]]]]


@pytest.mark.parametrize("right", [True, False], ids=["right hash", "old hash"])
@pytest.mark.parametrize(
    "field", ["format", "reader", "composite", "target", "truncation", "data", "coming", "sha256", "more"]
)
def test_a_field_of_another_type(field: str, right: bool, shared: Store) -> None:
    path, record = shared.folder / "manifest.json", manifest_of(shared)
    for value in VALUES:
        changed = record | {field: value}
        # A target is any text, and who notes nothing of examples says null, or nothing.
        fine = right and (
            field == "sha256"  # is replaced by the right one
            or (field == "target" and isinstance(value, str))
            or (field in ("data", "coming") and value is None)
        )
        text = json.dumps(sealed(changed) if right else changed)
        with replaced(path, text.encode()):
            if fine:
                Store.existing(shared.folder)
            else:
                with pytest.raises(InputError, match=r"manifest\.json"):
                    Store.existing(shared.folder)
                with pytest.raises(InputError, match=r"manifest\.json"):
                    Store.open(shared.folder, CONFIGURATION)


@pytest.mark.parametrize("right", [True, False], ids=["right hash", "old hash"])
@pytest.mark.parametrize("field", [*CONFIGURATION.reader, "more"])
def test_a_field_of_the_reader_of_another_type(field: str, right: bool, shared: Store) -> None:
    path, record = shared.folder / "manifest.json", manifest_of(shared)
    for value in VALUES:
        changed = record | {"reader": record["reader"] | {field: value}}
        wanted = bool if field == "chat_template" else str
        fine = right and field != "more" and type(value) is wanted
        with replaced(path, json.dumps(sealed(changed) if right else changed).encode()):
            if fine:
                assert Store.existing(shared.folder).configuration.reader[field] == value
            elif changed != record:
                with pytest.raises(InputError, match=r"manifest\.json"):
                    Store.existing(shared.folder)


@pytest.mark.parametrize("field", ["format", "reader", "composite", "target", "truncation", "sha256"])
def test_a_field_that_is_missing(field: str, store: Store) -> None:
    record = manifest_of(store)
    del record[field]
    if field != "sha256":
        record = sealed(record)
    (store.folder / "manifest.json").write_text(json.dumps(record))
    require_refused(store.folder, match="format 3" if field == "format" else "not a manifest.*Field required")


@pytest.mark.parametrize("field", CONFIGURATION.reader)
def test_a_field_of_the_reader_that_is_missing(field: str, store: Store) -> None:
    record = manifest_of(store)
    del record["reader"][field]
    (store.folder / "manifest.json").write_text(json.dumps(sealed(record)))
    require_refused(store.folder, match=rf"field 'reader': not a manifest: '{field}' must be a")


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"examples": -1}, "examples"),
        ({"examples": "3"}, "examples"),
        ({"examples": True}, "examples"),
        ({"examples": 3.5}, "examples"),
        ({"sha256": "g" * 64}, "sha256"),
        ({"sha256": "0" * 63}, "sha256"),
        ({"sha256": "0" * 64 + "\n"}, "sha256"),
        ({"sha256": 3}, "sha256"),
        ({"more": 3}, "more"),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["data", "coming"])
def test_what_is_noted_of_examples(name: str, data: dict[str, Any], field: str, store: Store) -> None:
    record = manifest_of(store)
    record[name] = record["data"] | data
    (store.folder / "manifest.json").write_text(json.dumps(sealed(record)))
    require_refused(store.folder, match=rf"field '{name}.{field}'")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"composite": "lrp"}, "not one of paper, attnlrp, cp_lrp"),
        ({"composite": "ATTNLRP"}, "not one of"),
        ({"truncation": "question"}, "'error' or 'passages'"),
        ({"format": 2}, "not a store of format 3; extract it again"),
        ({"format": 4}, "not a store of format 3; extract it again"),
        ({"format": "3"}, "not a store of format 3; extract it again"),
    ],
    ids=str,
)
def test_a_value_that_is_not_known(change: dict[str, Any], message: str, store: Store) -> None:
    (store.folder / "manifest.json").write_text(json.dumps(sealed(manifest_of(store) | change)))
    require_refused(store.folder, match=message)


@pytest.mark.parametrize(
    "change", [{"composite": "paper"}, {"target": "largest"}, {"truncation": "passages"}]
)
def test_a_value_that_was_changed_by_hand(change: dict[str, Any], store: Store) -> None:
    (store.folder / "manifest.json").write_text(json.dumps(manifest_of(store) | change))
    require_refused(store.folder, match="the manifest was changed or is damaged")


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b" ", b"{", b"nul", b"null", b"3", b'"text"', b"[]", b"{}", b"\xff\xfe", b"\0" * 99),
        *(b"[" * 100_000, b'{"format":' * 100_000, b"[" * 100_000 + b"]" * 100_000),
        *(b'{"format": NaN}', b'{"format": 1e999}', b'{"format": 3, "format": 3}', b'{"format": 3}'),
        b'{"format": 3, "reader": ' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"format": ' + b"9" * 4000 + b"}",
        b'{"format": ' + b"9" * 5000 + b"}",
    ],
    ids=lambda content: str(content[:20]),
)
def test_what_is_no_manifest(content: bytes, store: Store) -> None:
    (store.folder / "manifest.json").write_bytes(content)
    require_refused(store.folder)


@pytest.mark.parametrize("depth", range(880, 1000, 7))
def test_a_manifest_as_deep_as_python_can_follow(depth: int, shared: Store) -> None:
    path = shared.folder / "manifest.json"
    nested = "[" * depth + "]" * depth
    for text in (nested, f'{{"format": 3, "more": {nested}}}', f'{{"format": {nested}}}'):
        with replaced(path, text.encode()), pytest.raises(InputError, match=r"manifest\.json"):
            Store.existing(shared.folder)


@often
@given(place=st.floats(0, 1, exclude_max=True))
def test_any_flipped_bit_of_the_manifest(place: float, shared: Store) -> None:
    path = shared.folder / "manifest.json"
    whole = path.read_bytes()
    with replaced(path, flipped(whole, int(place * 8 * len(whole)))), suppress(InputError):
        # White space says nothing.
        assert Store.existing(shared.folder).configuration == shared.configuration


@pytest.mark.parametrize("kind", ["pipe", "folder", "socket", "link to nothing", "loop", "link to a device"])
def test_a_manifest_that_is_no_file(kind: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    store = store_of(tmp_path_factory.mktemp("s"), ROWS)
    path = store.folder / "manifest.json"
    path.unlink()
    put_in_place(path, kind)
    with pytest.raises(InputError, match="no store here"):
        Store.existing(store.folder)
    with pytest.raises(InputError, match="has files but is no store"):
        Store.open(store.folder, CONFIGURATION)


# The examples.


def relabelled(lines: list[bytes]) -> list[bytes]:
    return [line.replace(b'"start":0', b'"start":1') for line in lines]


EDITS: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "another label": relabelled,
    "no labels": lambda lines: [line.replace(b'"labels":[]', b'"labels":null') for line in lines],
    "another response": lambda lines: [line.replace(b"opened", b"closed") for line in lines],
    "another id": lambda lines: [lines[0].replace(b"bridge-0", b"bridge-9"), *lines[1:]],
    "a line less": lambda lines: lines[1:],
    "a line twice": lambda lines: [*lines, lines[0]],
    "another order": lambda lines: lines[::-1],
    "no line": lambda lines: [],
    "a blank line": lambda lines: [*lines, b"\n"],
    "white space": lambda lines: [line.replace(b",", b", ") for line in lines],
    "half a line": lambda lines: [*lines[:-1], lines[-1][:30]],
    "no JSON": lambda lines: [b"{oops\n"],
    "nested": lambda lines: [b"[" * 100_000],
    "other bytes": lambda lines: [b"\xff\xfe\0"],
}


@pytest.mark.parametrize("edit", EDITS)
def test_examples_that_were_edited(edit: str, store: Store, tmp_path: Path) -> None:
    path, whole = store.folder / "examples.jsonl", contents(store.folder)
    changed = b"".join(EDITS[edit](path.read_bytes().splitlines(keepends=True)))
    assert changed != path.read_bytes()
    path.write_bytes(changed)
    require_examples_refused(store, tmp_path, "changed or damaged")
    assert path.read_bytes() == changed
    with pytest.warns(
        LRP4RAGWarning, match=rf"{path}: changed, damaged or missing; it is made anew of the 3"
    ):
        store.add_examples(ROWS, rebuild=True)
    assert contents(store.folder) == whole


def require_examples_refused(store: Store, tmp_path: Path, match: str) -> None:
    other = store_of(tmp_path / "other", ROWS[:1])
    for attempt in (
        store.examples,
        lambda: store.add_examples(ROWS),
        lambda: inventory(store.folder),
        lambda: Rows.open(store.folder),
        lambda: export(store.folder, tmp_path / "table.parquet"),
        lambda: merge([store.folder, other.folder], tmp_path / "out"),
        lambda: merge([other.folder, store.folder], tmp_path / "out"),
        lambda: merge([other.folder], store.folder),
    ):
        with pytest.raises(InputError, match=match) as caught:
            attempt()
        assert str(store.folder / "examples.jsonl") in str(caught.value)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "table.parquet").exists()


@often
@given(place=st.floats(0, 1, exclude_max=True))
def test_any_flipped_bit_of_the_examples(place: float, shared: Store) -> None:
    path = shared.folder / "examples.jsonl"
    whole = path.read_bytes()
    message = r"examples\.jsonl: changed or damaged.*run lrp4rag extract again"
    with (
        replaced(path, flipped(whole, int(place * 8 * len(whole)))),
        pytest.raises(InputError, match=message),
    ):
        shared.examples()


def test_examples_that_are_gone(store: Store, tmp_path: Path) -> None:
    whole = contents(store.folder)
    (store.folder / "examples.jsonl").unlink()
    require_examples_refused(store, tmp_path, "missing")
    with pytest.warns(LRP4RAGWarning, match=r"examples\.jsonl"):
        store.add_examples(ROWS, rebuild=True)
    assert contents(store.folder) == whole


def test_examples_that_nothing_notes(tmp_path: Path) -> None:
    store = store_of(tmp_path / "s", [])
    (store.folder / "examples.jsonl").write_bytes(dump_examples(ROWS))
    require_examples_refused(store, tmp_path, "changed or damaged")


def test_damaged_examples_are_made_anew_of_none(store: Store) -> None:
    (store.folder / "examples.jsonl").write_bytes(b"?")
    with pytest.warns(LRP4RAGWarning, match="made anew of the 0 responses"):
        store.add_examples([], rebuild=True)
    assert Store.existing(store.folder).examples() == []


@pytest.mark.parametrize("kind", ["pipe", "folder", "socket", "link to nothing", "loop", "link to a device"])
def test_examples_that_are_no_file(kind: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    store = store_of(tmp_path_factory.mktemp("s"), ROWS)
    path = store.folder / "examples.jsonl"
    path.unlink()
    put_in_place(path, kind)
    for attempt in (store.examples, lambda: inventory(store.folder), lambda: Rows.open(store.folder)):
        with pytest.raises((InputError, OSError), match=r"examples\.jsonl|Is a directory"):
            attempt()


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


@pytest.mark.filterwarnings("ignore::lrp4rag.errors.LRP4RAGWarning")
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


# Merging.


def damage(store: Store, *rows: int, part: str = RELEVANCE, kind: str = "flipped") -> None:
    for row in rows:
        path = store.path(ROWS[row], part)
        content = path.read_bytes()
        path.unlink()
        if kind == "flipped":
            path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        elif kind == "swapped":
            path.write_bytes(store.path(ROWS[1], part).read_bytes())
        elif kind == "cut":
            path.write_bytes(content[:50])
        else:
            put_in_place(path, kind)


DAMAGES = ["flipped", "swapped", "cut", "pipe", "folder", "link to nothing"]


@pytest.mark.parametrize("kind", DAMAGES)
@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("part", KINDS)
def test_a_whole_file_is_taken_over_a_damaged_one(
    part: str, order: int, kind: str, copy: Copy, tmp_path: Path
) -> None:
    whole, broken = (copy(tmp_path / name) for name in ("whole", "broken"))
    expected = contents(whole.folder)
    damage(broken, 0, part=part, kind=kind)
    assert merge([whole.folder, broken.folder][::order], tmp_path / "out") == len(PARTS) * 3
    assert contents(tmp_path / "out") == expected


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_file_of_the_merged_store_is_replaced(kind: str, copy: Copy, tmp_path: Path) -> None:
    whole, out = (copy(tmp_path / name) for name in ("whole", "out"))
    damage(out, 0, kind=kind)
    if kind == "folder":  # it may hold what a user put there
        with pytest.raises(InputError, match="this is a folder"):
            merge([whole.folder], out.folder)
    else:
        assert merge([whole.folder], out.folder) == 1
        assert contents(out.folder) == contents(whole.folder)


@pytest.mark.parametrize("kind", DAMAGES)
@pytest.mark.parametrize("order", [1, -1])
def test_what_is_damaged_everywhere_is_told_after_all_else_was_copied(
    order: int, kind: str, copy: Copy, tmp_path: Path
) -> None:
    one, two = (copy(tmp_path / name) for name in ("one", "two"))
    damage(one, 0, 2, kind="flipped")
    damage(two, 0, 2, kind=kind)
    damage(one, 1, part=SIGNALS)
    out = tmp_path / "out"
    with pytest.raises(LRP4RAGError, match="2 files are damaged wherever there is one") as caught:
        merge([one.folder, two.folder][::order], out)
    first = (one, two)[::order][0]
    assert str(first.path(ROWS[0])) in str(caught.value) or str(first.path(ROWS[2])) in str(caught.value)
    merged = Store.existing(out)
    assert merged.examples() == ROWS
    held = {(row.id, part) for row in ROWS for part in PARTS if merged.holds(row, part)}
    assert held == {(row.id, part) for row in ROWS for part in PARTS} - {
        (ROWS[0].id, RELEVANCE),
        (ROWS[2].id, RELEVANCE),
    }
    assert sum(inventory(out).damaged.values()) == 0
    mended = store_of(tmp_path / "mended", ROWS)
    assert merge([mended.folder, one.folder], out) == 2


def test_what_only_the_merged_store_has_and_has_damaged_is_told(tmp_path: Path) -> None:
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


# What is read of a damaged store.


@pytest.mark.parametrize("part", PARTS)
def test_an_inventory_counts_what_is_damaged(part: str, store: Store) -> None:
    assert inventory(store.folder).damaged == dict.fromkeys(PARTS, 0)
    damage(store, 0, 1, part=part)
    found = inventory(store.folder)
    assert found.damaged == {name: 2 * (name == part) for name in PARTS}
    assert found.files == dict.fromkeys(PARTS, 3)
    assert found.first_damaged in {str(store.path(ROWS[k], part)) for k in (0, 1)}


@pytest.mark.parametrize("part", [RELEVANCE, SIGNALS, PROMPT, "matrix-3x2"])
def test_nothing_damaged_is_exported_or_trained_on(part: str, store: Store, tmp_path: Path) -> None:
    damage(store, 0, part=part)
    path = str(store.path(ROWS[0], part))
    with pytest.raises(InputError) as caught:
        export(store.folder, tmp_path / "table.parquet")
    assert path in str(caught.value)
    assert not list(tmp_path.glob("*.parquet")) + list(tmp_path.glob(".lrp4rag*"))
    with pytest.raises(InputError) as caught:
        [*Rows.open(store.folder).records()]
    assert path in str(caught.value)
