"""`lrp4rag extract` with its parts, and `lrp4rag store`: what they print, and what they refuse."""

import json
import os

import pytest

from lrp4rag.features.parts import PARTS as ALL_PARTS
from lrp4rag.features.parts import READING
from lrp4rag.training.store import Store
from lrp4rag.util import processes as processes_of
from tests.training.jobs import contents
from tests.training.labelled import examples, write_jsonl
from tests.training.stored import store_of

PARTS = tuple(part for part in ALL_PARTS if part != READING)
"""Those that are extracted by default."""

ROWS = [*examples(3), *examples(2, first=3, generator="g2")]


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    return write_jsonl(ROWS, tmp_path_factory.mktemp("data") / "responses.jsonl")


@pytest.fixture(scope="session")
def full(run, data, reader_folder, tmp_path_factory):
    """A store with every part."""
    folder = tmp_path_factory.mktemp("stores") / "full"
    result = run("extract", data, "--store", folder, "--reader", reader_folder, "--matrix", "6x4")
    assert result.stdout == "5 computed, 0 already present, 0 failed\n"
    return folder


def test_every_part_is_extracted_unless_named(run, full, data, reader_folder, tmp_path):
    assert Store.existing(full).parts() == [*PARTS, "matrix-6x4"]
    common = ["extract", data, "--store", tmp_path / "s", "--reader", reader_folder]
    run(*common, "--parts", "relevance", "--generator", "g2")
    assert Store.existing(tmp_path / "s").parts() == ["relevance"]
    result = run(*common, "--parts", " relevance, prompt ")
    assert result.stdout == "5 computed, 0 already present, 0 failed\n"
    assert Store.existing(tmp_path / "s").parts() == ["relevance", "prompt"]
    assert run(*common, "--parts", "prompt").stdout == "0 computed, 5 already present, 0 failed\n"


def test_workers(run, full, data, reader_folder, tmp_path, processes, monkeypatch):
    """The reader of each is loaded by its process."""
    monkeypatch.setattr(processes_of, "START", processes.get_start_method())
    common = ["extract", data, "--store", tmp_path / "s", "--reader", reader_folder]
    assert run(*common, "--workers", 2, "--max-memory", "8GB").stdout.startswith("5 computed")
    one, two = Store.existing(full), Store.existing(tmp_path / "s")
    assert two.configuration == one.configuration
    assert all(two.holds(row, part) for row in ROWS for part in PARTS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--parts", "relevance,signal"], "unknown part 'signal'"),
        (["--parts", ","], "at least one part"),
        *((["--matrix", shape], "unknown part 'matrix-") for shape in ("0x5", "-1x4", "9x9x9", "1e3x4")),
        (["--max-memory", "much"], "'much' is not a memory size; give one such as 4GB"),
        (["--generator", "g9"], "no responses of 'g9'; there are: g1, g2"),
        (["--composite", "lrp"], "'--composite': 'lrp' is not one of"),
    ],
)
def test_extract_refuses(run, data, reader_folder, tmp_path, options, message):
    common = ["extract", data, "--store", tmp_path / "s", "--reader", reader_folder]
    assert message in run(*common, *options, code=2).stderr
    assert not (tmp_path / "s").exists()


def test_extract_into_what_is_no_store(run, full, data, reader_folder, tmp_path):
    common = ["extract", data, "--reader", reader_folder, "--store"]
    (tmp_path / "file").write_text("x")
    assert "this is no folder" in run(*common, tmp_path / "file", code=2).stderr
    assert "has files but is" in run(*common, tmp_path, code=2).stderr
    stderr = run(*common, full, "--composite", "cp_lrp", "--parts", "relevance", code=2).stderr
    assert "composite attnlrp, not cp_lrp" in stderr


def test_info(run, full):
    lines = run("store", "info", full).stdout.splitlines()
    assert lines[0].startswith("reader      tiny (chat template, ")
    assert lines[0].endswith("float32")
    assert lines[1] == "composite   attnlrp, target response"
    assert lines[2] == "examples    5 of 5 sources"
    assert [line.split() for line in lines[3:5]] == [
        ["g1", "3,", "1", "hallucinated"],
        ["g2", "2,", "1", "hallucinated"],
    ]
    assert [line.split()[:2] for line in lines[6:]] == [[part, "5"] for part in (*PARTS, "matrix-6x4")]
    found = json.loads(run("store", "info", full, "--json").stdout)
    assert found["folder"] == str(full)
    assert found["configuration"]["composite"] == "attnlrp"
    assert found["files"] == dict.fromkeys((*PARTS, "matrix-6x4"), 5)
    assert found["hallucinated"] == {"g1": 1, "g2": 1}


def test_export(run, full, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet", reason="pip install 'lrp4rag[parquet]'")
    out = tmp_path / "table.parquet"
    result = run("store", "export", full, "--out", out)
    assert result.stdout == f"5 rows written to {out}\n"
    rows = pq.read_table(out).to_pylist()
    assert [row["id"] for row in rows] == [row.id for row in ROWS]
    assert len(rows[0]["R_response"]) == len(rows[0]["tokens"])


def test_bad_stores(run, full, data, tmp_path):
    none, out = tmp_path / "none", tmp_path / "out"
    for command in (["info", none], ["merge", full, none, "--out", out], ["export", none, "--out", out]):
        stderr = run("store", *command, code=2).stderr
        assert stderr == f"Error: {none}: there is no store here; make one with lrp4rag extract\n"
        assert not out.exists()
    assert "Missing argument 'FOLDERS" in run("store", "merge", "--out", out, code=2).stderr
    assert "Missing option '--out'" in run("store", "export", full, code=2).stderr
    assert "folder; name a file" in run("store", "export", full, "--out", tmp_path, code=2).stderr
    deep = tmp_path / "no" / "t.parquet"
    assert "folder does not exist" in run("store", "export", full, "--out", deep, code=2).stderr


def test_damaged_examples_are_named_and_extract_makes_them_anew(run, data, reader_folder, tmp_path):
    common = ["extract", data, "--store", tmp_path / "s", "--reader", reader_folder, "--parts", "relevance"]
    run(*common)
    path = tmp_path / "s" / "examples.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    assert f"{path}: changed or damaged" in run("store", "info", tmp_path / "s", code=2).stderr
    result = run(*common)
    assert result.stderr.startswith(f"Warning: {path}: changed, damaged or missing")
    assert result.stdout == "0 computed, 5 already present, 0 failed\n"
    assert path.read_bytes() == whole


def store_with(folder, damaged=(), failures=None):
    """A store made by hand, in which some rows' relevance is damaged and others failed."""
    store = store_of(folder, ROWS, ["segments"])
    for k in damaged:
        path = store.path(ROWS[k])
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    store.log_failures(failures or {})
    return store


def test_info_of_a_damaged_store(run, tmp_path):
    store = store_with(tmp_path / "s", damaged=[1, 3])
    lines = run("store", "info", tmp_path / "s").stdout.splitlines()
    assert lines[5].split() == ["parts", "responses", "MB", "kB", "each", "damaged"]
    assert [line.split()[0::4] for line in lines[6:8]] == [["relevance", "2"], ["segments", "0"]]
    first = min(str(store.path(ROWS[k])) for k in (1, 3))
    assert lines[8] == f"damaged     the first is {first}; lrp4rag extract computes these again"
    found = json.loads(run("store", "info", tmp_path / "s", "--json").stdout)
    assert found["damaged"] == {"relevance": 2, "segments": 0}
    assert found["first_damaged"] == first


def test_info_of_a_store_with_failures(run, tmp_path):
    failures = {"c": "no memory", **{f"long-{k}": f"{600 + k} tokens are too many" for k in range(3)}}
    store_with(tmp_path / "s", failures=failures)
    lines = run("store", "info", tmp_path / "s").stdout.splitlines()
    assert lines[-4:] == [
        "failed      4 in the last run",
        " count  first                    reason",
        "     3  long-0                   600 tokens are too many",
        "     1  c                        no memory",
    ]
    found = json.loads(run("store", "info", tmp_path / "s", "--json").stdout)
    assert found["failed"] == 4
    assert found["failures"][0] == {"reason": "600 tokens are too many", "count": 3, "first": "long-0"}


@pytest.mark.parametrize(
    "line", ["{", "[]", "3", '{"id": 1, "error": ""}', '{"id": "a"}', "[" * 100_000, "\x00", "null"]
)
def test_a_damaged_log_of_failures_is_told(run, tmp_path, line):
    store_with(tmp_path / "s", failures={"a": "b"})
    path = tmp_path / "s" / "failures.jsonl"
    path.write_text(path.read_text() + line + "\n")
    result = run("store", "info", tmp_path / "s", "--json")
    assert result.stderr.startswith(f"Warning: {path}, line 2: damaged")
    found = json.loads(result.stdout)
    assert found["failed"] is found["failures"] is None
    assert "5 of 5 sources" in run("store", "info", tmp_path / "s").stdout


def test_merge_of_damaged_stores(run, tmp_path):
    one, two = store_with(tmp_path / "one", damaged=[0, 1]), store_with(tmp_path / "two", damaged=[1, 2])
    out = tmp_path / "out"
    result = run("store", "merge", one.folder, two.folder, "--out", out, code=1)
    assert result.stderr.startswith(
        f"Error: 1 file is damaged wherever there is one, the first being {one.path(ROWS[1])}"
    )
    assert "9 files were copied" in result.stderr
    assert [Store.existing(out).holds(row) for row in ROWS] == [True, False, True, True, True]
    stored = run("store", "info", out).stdout
    assert "damaged" not in stored


def too_long(data, count, path):
    """The data with responses that no window holds, each of another length."""
    lines = [json.loads(line) for line in data.read_text().splitlines()]
    for k, line in enumerate(lines[:count]):
        line |= {"response": "word " * (600 + k), "labels": []}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_failures_are_a_table_of_reasons_and_the_exit_code(run, data, reader_folder, tmp_path):
    some = too_long(data, 3, tmp_path / "some.jsonl")
    common = ["extract", some, "--store", tmp_path / "s", "--reader", reader_folder, "--parts", "relevance"]
    result = run(*common, code=1)
    assert result.stdout == "2 computed, 0 already present, 3 failed\n"
    lines = result.stderr.splitlines()
    assert lines[0] == "Warning: 3 responses failed"
    assert lines[1].split() == ["count", "first", "reason"]
    assert lines[2].split()[:2] == ["3", "bridge-0"]
    assert "exceed the reader's window" in lines[2]
    assert lines[3:] == ["Error: 3 failed, and --allow-failures is 0; the next run tries these again"]
    assert run(*common, "--allow-failures", 2, code=1).stdout == "0 computed, 2 already present, 3 failed\n"
    assert "Error" not in run(*common, "--allow-failures", 3).stderr
    assert "'--allow-failures': -1 is not" in run(*common, "--allow-failures", -1, code=2).stderr
    every = ["extract", too_long(data, 5, tmp_path / "every.jsonl"), "--store", tmp_path / "e"]
    result = run(*every, "--reader", reader_folder, code=1)
    assert result.stdout == "0 computed, 0 already present, 5 failed\n"


def test_export_writes_over_nothing_that_is_read_or_is_no_file(run, tmp_path):
    store = store_with(tmp_path / "s")
    (tmp_path / "pipe").unlink(missing_ok=True)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(store.folder / "examples.jsonl")
    os.link(store.folder / "examples.jsonl", tmp_path / "same")
    before = contents(store.folder)
    for out, message in (
        (tmp_path / "pipe", "this is a pipe"),
        (tmp_path / "link", "this is a link"),
        (tmp_path / "same", "this is read as input"),
        (store.folder / "examples.jsonl", "this is read as input"),
        (store.path(ROWS[0]), "part of a store"),
    ):
        assert message in run("store", "export", store.folder, "--out", out, code=2).stderr
    assert contents(store.folder) == before
