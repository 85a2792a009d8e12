import os
import subprocess
import sys

import pytest

from lrp4rag.util.files import (
    _host,
    folder_written_whole,
    remove_leftovers,
    write_atomically,
    written_atomically,
)


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
