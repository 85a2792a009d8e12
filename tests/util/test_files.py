import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lrp4rag.util.errors import InputError
from lrp4rag.util.files import (
    FORGOTTEN_AFTER,
    _host,
    _partial,
    check_folder,
    check_output,
    folder_written_whole,
    is_leftover,
    read_bytes,
    remove_leftovers,
    write_atomically,
    written_atomically,
)
from tests.hostile.damage import PLACES, put


def leftover(process, host=None, random="a" * 16):
    return f".lrp4rag-{host or _host()}-{process}-{random}.tmp"


def test_a_file_is_written_whole(tmp_path):
    write_atomically(tmp_path / "a.txt", "Zoë\n")
    write_atomically(tmp_path / "a.txt", b"bytes")
    assert (tmp_path / "a.txt").read_bytes() == b"bytes"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    write_atomically(tmp_path / "a.txt", "old")

    def fail(_descriptor):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(tmp_path / "a.txt", "new")
    assert (tmp_path / "a.txt").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_leftovers_of_dead_processes_go_and_of_living_ones_stay(tmp_path):
    script = (
        "import os, sys\nfrom pathlib import Path\nfrom lrp4rag.util.files import written_atomically\n"
        "with written_atomically(Path(sys.argv[1]) / 'a') as stream:\n"
        "    stream.write(b'x'); stream.flush(); os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    (killed,) = tmp_path.iterdir()
    living = leftover(os.getppid())
    for name in (leftover(10**10 - 1), living):
        (tmp_path / name).write_text("x")
    (tmp_path / f"{killed.name[:-20]}{'b' * 16}.tmp").mkdir()
    remove_leftovers(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [living]


def test_what_is_being_written_here_is_no_leftover(tmp_path):
    with written_atomically(tmp_path / "a.txt") as stream:
        remove_leftovers(tmp_path)
        stream.write(b"x")
    assert (tmp_path / "a.txt").read_bytes() == b"x"


def test_a_folder_is_written_whole_and_takes_the_place_of_an_empty_one_only(tmp_path):
    def write(content):
        with folder_written_whole(tmp_path / "new" / "model") as partial:
            (partial / "a").write_text(content)
            if content == "fail":
                raise RuntimeError

    with pytest.raises(RuntimeError):
        write("fail")
    assert list((tmp_path / "new").iterdir()) == []
    (tmp_path / "new" / "model").mkdir()
    write("1")
    with pytest.raises(OSError, match="not empty"):
        write("2")
    assert (tmp_path / "new" / "model" / "a").read_text() == "1"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["model"]


DEAD = 10**10 - 1  # no process has this number
FOREIGN = [
    *(".notes.tmp", ".notes.1.tmp", f".notes.{DEAD}.tmp", f".card.json.{DEAD}.tmp", ".tmp", "..tmp"),
    *(".lrp4rag.tmp", ".lrp4rag-1.tmp", f".lrp4rag-{DEAD}.tmp", f".lrp4rag-notes-{DEAD}-mine.tmp"),
    *(f"{leftover(DEAD)}.bak", f"x{leftover(DEAD)}", leftover(DEAD).upper(), leftover(DEAD)[1:]),
    *(leftover(DEAD, random="a" * 15), leftover(DEAD, random="g" * 16)),
]


@pytest.mark.parametrize("name", FOREIGN)
def test_files_and_folders_of_users_stay(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("years of work")
    (tmp_path / "below" / name).mkdir(parents=True)
    (tmp_path / "below" / name / "thesis.tex").write_text("years of work")
    for folder in (tmp_path, tmp_path / "below"):
        remove_leftovers(folder)
        with folder_written_whole(folder / "model") as partial:
            (partial / "a").write_text("1")
        write_atomically(folder / "out.txt", "x")
    assert (tmp_path / name).exists()
    assert (tmp_path / "below" / name / "thesis.tex").exists()


@given(st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=60))
def test_no_name_that_a_person_gives_is_one_of_ours(name: str) -> None:
    assert not is_leftover(Path("/nowhere") / name)
    assert not is_leftover(Path("/nowhere") / f".{name}.tmp")


def test_links_are_left_alone_and_what_they_point_to_too(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "a.tex").write_text("years of work")
    (tmp_path / leftover(DEAD)).symlink_to(tmp_path / "thesis")
    remove_leftovers(tmp_path)
    assert (tmp_path / "thesis" / "a.tex").exists()


def test_another_hosts_file_is_left_alone_for_days(tmp_path: Path) -> None:
    path = tmp_path / leftover(DEAD, host="0" * 8)
    path.write_text("half")
    remove_leftovers(tmp_path)
    assert path.exists()
    long_ago = time.time() - FORGOTTEN_AFTER - 60
    os.utime(path, (long_ago, long_ago))
    remove_leftovers(tmp_path)
    assert not path.exists()


def test_the_name_of_a_partial_file_has_host_process_and_chance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def name() -> str:
        with _partial(tmp_path / "a") as partial:
            return partial.name

    write_atomically(tmp_path / ("a" * 255), "x")  # whose name is as long as any
    names = {name() for _ in range(100)}
    assert len(names) == 100
    assert all(f"-{os.getpid()}-" in one for one in names)
    monkeypatch.setattr(socket, "gethostname", lambda: "other")
    assert name().split("-")[1] not in {one.split("-")[1] for one in names}


def place(kind: str, folder: Path) -> Path:
    path = folder / "out"
    if kind == "link":
        (folder / "target").write_text("years of work")
        path.symlink_to(folder / "target")
    elif kind == "device":
        path = Path("/dev/null")
    elif kind == "no folder":
        path = folder / "none" / "out"
    elif kind == "below a file":
        (folder / "file").write_text("x")
        path = folder / "file" / "out"
    elif kind == "too long":
        path = folder / ("a" * 256)
    else:
        put(path, kind)
    return path


KINDS = ["link", "device", "no folder", "below a file", "too long", *PLACES]


@pytest.mark.parametrize("kind", KINDS)
def test_an_output_is_a_new_or_a_regular_file(kind: str, tmp_path: Path) -> None:
    path = place(kind, tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match=r"name|write|exist"):
        check_output(path)
    if kind not in ("no folder", "below a file"):
        with pytest.raises((InputError, OSError)):
            write_atomically(path, "x")
    assert sorted(tmp_path.rglob("*")) == before
    assert Path("/dev/null").is_char_device()
    if kind == "link":
        assert (tmp_path / "target").read_text() == "years of work"


@pytest.mark.parametrize(
    "name",
    [
        *("manifest.json", "examples.jsonl", "failures.jsonl", "card.json", "config.json"),
        *("estimator.safetensors", "model.safetensors", "reader.gguf"),
        *("tokenizer.json", "tokenizer_config.json", "generation_config.json"),
    ],
)
def test_files_that_stores_detectors_and_models_are_made_of_stay(name: str, tmp_path: Path) -> None:
    check_output(tmp_path / name)  # a new one may be called so
    (tmp_path / name).write_text("hours of work")
    with pytest.raises(InputError, match="part of a store, a detector or a model"):
        check_output(tmp_path / name)


def test_an_input_is_no_output_by_whatever_name(tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text("{}")
    os.link(data, tmp_path / "same.html")
    for path in (data, tmp_path / "same.html", tmp_path / "." / "data.jsonl"):
        with pytest.raises(InputError, match="read as input"):
            check_output(path, [data])
    (tmp_path / "other.html").write_text("old")
    assert check_output(tmp_path / "other.html", [data, tmp_path / "none"]) == tmp_path / "other.html"
    assert (tmp_path / "other.html").read_text() == "old"
    assert {path.name for path in tmp_path.iterdir()} == {"data.jsonl", "same.html", "other.html"}


@pytest.mark.parametrize("kind", ["pipe", "dangling link", "socket", "device", "below a file"])
def test_a_folder_of_results_is_a_folder(kind: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"folder|nothing"):
        check_folder(place(kind, tmp_path))
    assert check_folder(tmp_path / "new" / "one") == tmp_path / "new" / "one"


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are counted in /proc")
@pytest.mark.parametrize("kind", ["device", *PLACES])
def test_only_regular_files_are_read_and_nothing_is_waited_for(kind: str, tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises((InputError, OSError)):
        read_bytes(place(kind, tmp_path), 100)
    assert len(os.listdir("/proc/self/fd")) == before


def test_no_more_is_read_than_the_limit(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 101)
    with pytest.raises(InputError, match="101 bytes, and at most 100 bytes"):
        read_bytes(tmp_path / "a", 100)
    assert len(read_bytes(tmp_path / "a", 101)) == 101
