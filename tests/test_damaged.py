"""Every kind of file, damaged in every way: what reads it says which file is bad, and waits for nothing."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lrp4rag.data import load_examples
from lrp4rag.features.parts import PROMPT, READING, RELEVANCE
from lrp4rag.reader import load_reader
from lrp4rag.training.inventory import export, inventory, merge
from lrp4rag.training.rows import Rows
from lrp4rag.training.store import Store, is_whole
from lrp4rag.util.errors import LONGEST, InputError
from tests.hostile.damage import BYTES, NO_JSON, NO_RECORD, PLACES, flipped, often, put, replaced
from tests.test_data import QA, answer, ragtruth
from tests.tiny import save_tiny_reader
from tests.training.labelled import examples
from tests.training.stored import CONFIGURATION, SIGNALS, store_of

ROWS = examples(3)
PARTS = (RELEVANCE, READING, SIGNALS, PROMPT, "matrix-3x2")


@dataclass(frozen=True)
class Kind:
    """A kind of file: `make` writes a whole one, each of `readers` is given its path. `contents` are what it
    cannot hold; `exact`: not one bit of it may be another."""

    make: Callable[[Path], Path]
    readers: Sequence[Callable[[Path], Any]]
    contents: Sequence[bytes] = ()
    exact: bool = False
    required: bool = True


def data_file(folder: Path) -> Path:
    path = folder / "data.jsonl"
    path.write_text('{"question": "When?", "passages": ["In 1874."], "response": "It was 1874."}')
    return path


def of_ragtruth(name: str, contents: Sequence[bytes]) -> Kind:
    read = [lambda path: load_examples(path.parent)]
    return Kind(lambda folder: ragtruth(folder, [QA], [answer()]) / name, read, contents)


def open_reader(path: Path) -> None:
    load_reader(str(path.parent))


def of_reader(name: str, contents: Sequence[bytes], *, required: bool = True) -> Kind:
    return Kind(
        lambda folder: save_tiny_reader(folder / "tiny") / name, [open_reader], contents, required=required
    )


def index_of_reader(folder: Path) -> Path:
    weights = save_tiny_reader(folder / "tiny") / "model.safetensors"
    weights.rename(weights.with_name("model-1.safetensors"))
    index = weights.with_name("model.safetensors.index.json")
    index.write_text(json.dumps({"metadata": {}, "weight_map": {"lm_head.weight": "model-1.safetensors"}}))
    return index


def of_store(name: str, contents: Sequence[bytes], *, exact: bool = False) -> Kind:
    return Kind(
        lambda folder: store_of(folder / "s", ROWS, PARTS).folder / name, STORE_READERS, contents, exact
    )


def array_file(part: str) -> Kind:
    return Kind(
        lambda folder: store_of(folder / "s", ROWS, PARTS).path(ROWS[0], part),
        [partial(read_array, part)],
        exact=True,
    )


def read_array(part: str, path: Path) -> object:
    """A damaged file is not held, and whoever reads it gets an error."""
    store = Store.existing(path.parents[1] if path.parents[1].name == "s" else path.parents[2])
    assert store.path(ROWS[0], part) == path
    held = store.holds(ROWS[0], part)
    assert held == is_whole(path)
    found = store.read(ROWS[0]) if part == RELEVANCE else store.arrays(ROWS[0], part)
    assert held
    return found


def merged(path: Path, *, into: bool) -> None:
    other = path.parents[1] / "other"
    shutil.rmtree(other, ignore_errors=True)
    store_of(other, [])
    out = path.parents[1] / "out"
    try:
        merge([other], path.parent) if into else merge([other, path.parent], out)
    finally:
        assert not out.exists()


STORE_READERS = [
    lambda path: Store.existing(path.parent).examples(),
    lambda path: Store.open(path.parent, CONFIGURATION).add_examples(ROWS),
    lambda path: inventory(path.parent),
    lambda path: Rows.open(path.parent),
    lambda path: export(path.parent, path.parents[1] / "table.parquet"),
    partial(merged, into=False),
    partial(merged, into=True),
]

KINDS = {
    "data": Kind(data_file, [load_examples], NO_RECORD),
    # Without sources, the responses are what is wrong.
    "source_info": of_ragtruth("source_info.jsonl", [one for one in NO_RECORD if one not in (b"", b"[]")]),
    "response": of_ragtruth("response.jsonl", NO_RECORD),
    "configuration": of_reader("config.json", [*NO_RECORD, b"{}"]),
    "tokenizer": of_reader("tokenizer.json", [*NO_JSON[:5], *NO_JSON[9:], b"{}"]),
    "settings of the tokenizer": of_reader("tokenizer_config.json", [b"{"], required=False),
    "weights": of_reader("model.safetensors", [b"", b"x" * 100, b"\xff" * 8 + b"{"]),
    "index of weights": Kind(
        index_of_reader,
        [open_reader],
        [*NO_RECORD, *(b'{"weight_map": %s}' % one for one in (b"null", b"[]", b'"x"', b"{}"))],
        required=False,
    ),
    "manifest": of_store(
        "manifest.json",
        [*NO_RECORD, b"{}", b'{"format": 3}', b'{"format": 3, "reader": ' + b"[" * 900 + b"]" * 900 + b"}"],
    ),
    "examples": of_store("examples.jsonl", NO_RECORD, exact=True),
    **{part: array_file(part) for part in PARTS},
}
EXACT = [name for name, kind in KINDS.items() if kind.exact]

Whole = Callable[[str], Path]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """A file of each kind, made once."""
    return cache(lambda name: KINDS[name].make(tmp_path_factory.mktemp("whole")))


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


def require_named(name: str, path: Path, named: Path | None = None) -> None:
    """Each reader refuses the file in a short line that names it, or the folder that it is in."""
    named = named or (path.parent if open_reader in KINDS[name].readers else path)
    for read in KINDS[name].readers:
        with pytest.raises((InputError, OSError)) as caught:
            read(path)
        message = str(caught.value)
        assert str(named) in message
        assert len(message) < LONGEST + 1000
        assert "\n" not in message


@pytest.mark.parametrize("name", KINDS)
def test_whole_files_are_read(name: str, whole: Whole) -> None:
    if name in ("index of weights", "manifest", "examples"):  # which lacks weights; merging changes them
        return
    for read in KINDS[name].readers:
        read(whole(name))


@pytest.mark.parametrize(("name", "content"), [(n, c) for n, kind in KINDS.items() for c in kind.contents])
def test_other_content_is_refused(name: str, content: bytes, whole: Whole) -> None:
    with replaced(whole(name), content):
        require_named(name, whole(name))


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("damage", BYTES)
def test_damaged_bytes_are_refused(name: str, damage: str, whole: Whole) -> None:
    path = whole(name)
    with replaced(path, BYTES[damage](path.read_bytes())):
        require_named(name, path)


REQUIRED = [name for name, kind in KINDS.items() if kind.required]
ANYTHING = ("data", "tokenizer", "weights", RELEVANCE)
"""One of each way to read a file."""


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, kind) for name in ANYTHING for kind in (*PLACES, "nothing")),
        *(
            (name, kind)
            for name in REQUIRED
            if name not in ANYTHING
            for kind in ("pipe", "folder", "nothing")
        ),
    ],
)
def test_what_is_no_file_is_refused_and_not_waited_for(name: str, kind: str, tmp_path: Path) -> None:
    path = KINDS[name].make(tmp_path)
    path.unlink()
    if kind != "nothing":
        put(path, kind)
    missing = kind == "nothing" and name in PARTS  # which is said of the store
    require_named(name, path, path.parents[1] if missing else path.parent)


@often
@given(name=st.sampled_from([*EXACT, "manifest"]), place=st.floats(0, 1, exclude_max=True))
def test_any_flipped_bit(name: str, place: float, whole: Whole) -> None:
    path = whole(name)
    content = path.read_bytes()
    with replaced(path, flipped(content, int(place * 8 * len(content)))):
        if name == "manifest":  # in which white space says nothing
            with suppress(InputError):
                assert Store.existing(path.parent).configuration == CONFIGURATION
        else:
            require_named(name, path)


@often
@given(name=st.sampled_from(EXACT), data=st.data())
def test_any_bytes_in_the_place_of_others(name: str, data: st.DataObject, whole: Whole) -> None:
    path = whole(name)
    content = path.read_bytes()
    start = data.draw(st.integers(0, len(content)))
    stop = data.draw(st.integers(start, min(len(content), start + 64)))
    changed = content[:start] + data.draw(st.binary(max_size=64)) + content[stop:]
    assume(changed != content)
    with replaced(path, changed):
        require_named(name, path)


@pytest.mark.parametrize("name", [RELEVANCE, SIGNALS])
def test_any_flipped_bit_of_the_headers_length(name: str, whole: Whole) -> None:
    path = whole(name)
    content = path.read_bytes()
    for bit in range(64):
        with replaced(path, flipped(content, bit)):
            require_named(name, path)
