"""Stores whose files are whole and wrong: what is read is what was written, or an error names the file."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save_file

from lrp4rag.features.parts import PROMPT, READING, RELEVANCE
from lrp4rag.lrp.relevance import Relevance
from lrp4rag.training.inventory import export, inventory, merge
from lrp4rag.training.rows import Rows
from lrp4rag.training.store import Store, discard, write_arrays
from lrp4rag.util import tensors
from lrp4rag.util.errors import InputError, LRP4RAGError
from lrp4rag.util.strict_json import sealed
from tests.hostile.damage import ANY_JSON, often, put, replaced
from tests.test_damaged import PARTS, ROWS, read_array
from tests.training.jobs import contents
from tests.training.stored import SIGNALS, store_of

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
    if part != READING:
        readers.append(lambda: [*Rows.open(store.folder).records()])
    for read in readers:
        with pytest.raises(InputError) as caught:
            read()
        assert any(path in str(caught.value) for path in paths)
    assert not list(tmp_path.glob("*.parquet")) + list(tmp_path.glob(".lrp4rag*"))
    if kind != "folder":
        discard(store.path(ROWS[0], part))
        assert not store.has(ROWS[0], part)
