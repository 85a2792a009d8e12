"""Groups of responses to one prompt: the same ones, in the same order, as one process makes."""

from __future__ import annotations

import random
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lrp4rag.data import json_line, load_examples
from lrp4rag.example import Example
from lrp4rag.guard.cluster import index as module
from lrp4rag.guard.cluster.groups import HeldGroups, PlacedGroups, by_prompt
from lrp4rag.guard.cluster.index import files_of, hashes, index, read_piece
from lrp4rag.training.extract import groups_of
from lrp4rag.training.manifest import parse_examples
from lrp4rag.util.errors import InputError
from lrp4rag.util.rows import Piece, pieces_of
from tests.training.jobs import responses


def shuffled(prompts: int, each: int, seed: int = 0) -> list[Example]:
    rows = responses(prompts, each)
    random.Random(seed).shuffle(rows)
    return rows


def placed(path: Path) -> PlacedGroups:
    """As `index` makes them, without a cluster."""
    (piece,) = pieces_of(str(path))
    found = read_piece(piece, None, several=False)
    order, starts, after = by_prompt(found["high"], found["low"])
    places = {name: found[name] for name in ("start", "size", "line")}
    return PlacedGroups(
        (str(path),),
        None,
        len(found["ids"]),
        found["file"],
        **places,
        order=order,
        starts=starts,
        after=after,
    )


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "d.jsonl"
    path.write_text("".join(json_line(example) + "\n" for example in shuffled(5, 3)))
    return path


def test_placed_and_held_groups_are_those_of_one_process(data: Path) -> None:
    examples = load_examples(data)
    expected = groups_of(examples, examples)
    for groups in (placed(data), HeldGroups.of(examples)):
        assert (len(groups), groups.rows, groups.examples) == (5, 15, 15)
        for number, group in enumerate(expected):
            found, numbered = groups.read(number)
            assert found.examples == group.examples
            assert group.other is not None
            assert found.other is not None
            assert found.other.prompt == group.other.prompt
            assert [examples[row] for row, _, _ in numbered] == list(group.examples)


def test_one_prompt_has_no_other(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").write_text("".join(json_line(one) + "\n" for one in responses(1, 2)))
    assert placed(tmp_path / "d.jsonl").read(0)[0].other is None


def test_responses_of_one_row_are_numbered(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text(
        '{"question": "Q?", "passages": ["P."], "responses": [{"response": "A."}, {"response": "B."}]}'
    )
    groups = placed(path)
    assert (groups.rows, groups.examples) == (1, 2)
    assert [(row, k, one.id) for row, k, one in groups.read(0)[1]] == [(0, 0, "1-1"), (0, 1, "1-2")]


@pytest.mark.parametrize("seed", range(20))
def test_by_prompt_against_a_dictionary(seed: int) -> None:
    generator = np.random.default_rng(seed)
    keys = generator.integers(0, 6, (generator.integers(1, 30), 2)).astype(np.uint64)
    order, starts, after = by_prompt(keys[:, 0], keys[:, 1])
    expected: dict[tuple, list[int]] = {}
    for row, key in enumerate(map(tuple, keys.tolist())):
        expected.setdefault(key, []).append(row)
    found = [order[a:b].tolist() for a, b in pairwise(starts)]
    assert found == list(expected.values())
    ranked = sorted(expected)
    following = dict(zip(ranked, ranked[1:] + ranked[:1], strict=True))
    firsts = [expected[following[key]][0] if len(expected) > 1 else -1 for key in expected]
    assert after.tolist() == firsts


def test_a_piece_tells_its_examples_as_the_store_writes_them(data: Path) -> None:
    (piece,) = pieces_of(str(data))
    found = read_piece(piece, None, several=False)
    assert parse_examples(found["examples"], data) == [
        Example(**{**asdict(one), "sources": (), "spans": one.spans, "labels": one.labels})
        for one in load_examples(data)
    ]
    assert found["identities"].shape == (15, 2)


def test_the_first_row_that_is_not_good_is_told(data: Path) -> None:
    data.write_text(data.read_text() + '{"question": "Q?", "passages": []}\n')
    (piece,) = pieces_of(str(data))
    error = read_piece(piece, None, several=False)["error"]
    assert (error["line"], error["field"]) == (16, "passages")


def test_hashes_keep_their_order() -> None:
    assert hashes(["0" * 31 + "1", "f" * 32]).tolist() == [[0, 1], [2**64 - 1, 2**64 - 1]]
    assert hashes([]).shape == (0, 2)


def test_files_of(tmp_path: Path, data: Path) -> None:
    assert files_of(str(data)) == [str(data)]
    assert files_of(str(tmp_path)) == [str(data)]
    assert files_of("-") is None
    (tmp_path / "a.json").write_text("[{}]")
    assert files_of(str(tmp_path / "a.json")) is None
    with pytest.raises(InputError, match="no such file"):
        files_of(str(tmp_path / "none.jsonl"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no .jsonl or .parquet file"):
        files_of(str(tmp_path / "empty"))
    for name in ("source_info.jsonl", "response.jsonl"):
        (tmp_path / "empty" / name).touch()
    assert files_of(str(tmp_path / "empty")) is None


def test_files_are_named_for_processes_in_any_folder(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert files_of(data.name) == [str(data)]
    assert files_of(".") == [str(data)]


@pytest.mark.parametrize(
    ("content", "in_pieces"),
    [
        ('{"question": "Q?",\n "passages": ["P."],\n "response": "R."}\n', False),
        ('\n \n{"question": "Q?", "passages": ["P."]}\n', True),
        ("[1]\n", False),
        ("[" * 100_000 + "\n", False),
        ('{"a": ' * 100_000 + "\n", True),
    ],
    ids=["one object in lines", "blank lines first", "array", "deep array", "deep object"],
)
def test_jsonl_is_told_by_its_first_row(tmp_path: Path, content: str, in_pieces: bool) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text(content)
    assert files_of(str(path)) == ([str(path)] if in_pieces else None)


def test_what_ray_hands_over_is_not_kept(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [tmp_path / f"{k}.jsonl" for k in range(4)]
    for file, line in zip(files, data.read_text().splitlines(), strict=False):
        file.write_text(line + "\n")
    handed: list[list[weakref.ref[Any]]] = []
    kept: list[bool] = []

    def each(function: Callable[..., Any], pieces: Sequence[Piece], *arguments: Any) -> Iterator[Any]:
        for piece in pieces:
            found = function(piece, *arguments)
            if isinstance(found, dict):
                # That of the piece before is still looked at.
                kept.extend(one() is not None for arrays in handed[:-1] for one in arrays)
                handed.append([weakref.ref(found[name]) for name in ("start", "ids", "identities")])
            yield found

    monkeypatch.setattr(module, "_each", each)
    examples: list[Any] = []
    assert index([str(file) for file in files], keep=lambda *given: examples.append(given)).rows == 4
    assert len(kept) == 3 * (1 + 2)
    assert not any(kept)


def test_rows_of_several_files_without_ids_are_told_by_file_and_line(tmp_path: Path) -> None:
    row = '{"question": "Q?", "passages": ["P."], "response": "R."}\n'
    (tmp_path / "a.jsonl").write_text("\n" + row)
    (piece,) = pieces_of(str(tmp_path / "a.jsonl"))
    (told,) = parse_examples(read_piece(piece, None, several=True)["examples"], tmp_path)
    (alone,) = parse_examples(read_piece(piece, None, several=False)["examples"], tmp_path)
    assert (told.id, alone.id) == ("a.jsonl:2", "2")
