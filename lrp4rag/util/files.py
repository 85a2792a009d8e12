"""Read files within limits, and write them atomically, only over what may be replaced.

Folders and files behind a URL, such as s3://bucket/folder, are paths of fsspec (`place_at`), with the methods
of `Path` that are used here. They have no links, leftovers or locks, and a file appears when all is written.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import socket
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, cast
from urllib.parse import unquote, urlsplit

from lrp4rag.util.errors import InputError, first_line

# Half-written files: the program, a hash of the host's name, the process, and random digits.
_PARTIAL = re.compile(r"\.lrp4rag-([0-9a-f]{8})-(\d{1,10})-[0-9a-f]{16}\.tmp")
FORGOTTEN_AFTER = 7 * 24 * 3600.0
"""Seconds after which a half-written file counts as left behind where its process cannot be asked for: on
another host, or of our own number."""

_PROTECTED_NAMES = {
    *("manifest.json", "examples.jsonl", "failures.jsonl", "card.json", "config.json", "lrp4rag_files.json"),
    *("tokenizer.json", "tokenizer_config.json", "generation_config.json", "special_tokens_map.json"),
    *("added_tokens.json", "chat_template.json", "vocab.json", "merges.txt", "preprocessor_config.json"),
}
_PROTECTED_ENDINGS = {".safetensors", ".skops", ".gguf", ".jinja", ".model"}

_partials: set[str] = set()
"""Names of the files and folders that this process is writing."""


def cache_dir() -> Path:
    """Return the folder of converted readers, file hashes and fetched data; `LRP4RAG_CACHE` moves it."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("LRP4RAG_CACHE") or Path(caches, "lrp4rag"))


def place_at(path: str | Path) -> Path:
    """Return the path of a local folder or file, or of one behind a URL of fsspec. Raises `InputError` for a
    URL whose library is not installed."""
    if not isinstance(path, str):  # also a path that this function returned
        return path
    scheme, _, rest = path.partition("://")
    if not rest or not re.fullmatch(r"[a-z][a-z0-9+.-]*", scheme):
        return Path(path)
    if scheme == "file":
        return Path(unquote(urlsplit(path).path))
    try:
        from upath import UPath

        remote = UPath(path)
        _ = remote.fs
    except ImportError as error:
        raise InputError(
            f"{first_line(error)}: URLs need pip install 'lrp4rag[remote]', and the scheme's own library",
            path=path,
        ) from error
    except ValueError as error:
        raise InputError(f"cannot open this: {error}", path=path) from error
    return cast(Path, remote)


def is_local(path: str | Path) -> bool:
    """Say whether a path is of this machine, and not behind a URL."""
    return isinstance(path, str | os.PathLike) and not hasattr(path, "fs")


def absolute(path: Path) -> Path:
    """Return the path as processes in other folders name it."""
    return path.resolve() if is_local(path) else path


def absolute_name(name: str) -> str:
    """Return the absolute path of a local folder; other names, such as a bundled detector's, stay."""
    return str(Path(name).absolute()) if Path(name).exists() else name


def present(path: Path) -> bool:
    """Say whether anything is at a path, even a link to nothing."""
    return os.path.lexists(path) if is_local(path) else path.exists()


@contextmanager
def local_copy(path: Path) -> Iterator[Path]:
    """Yield the path of a local regular file with the same content, for libraries that open files by name.
    Raises `InputError` for anything else, and `OSError` where it cannot be read."""
    if is_local(path):
        require_regular(path, os.stat(path).st_mode)  # opening a pipe would wait for its writer
        yield path
        return
    with tempfile.NamedTemporaryFile(prefix="lrp4rag-", suffix=path.suffix) as copy:
        copy.write(path.read_bytes())
        copy.flush()
        yield Path(copy.name)


def read_bytes(path: str | Path, limit: int) -> bytes:
    """Read a file. Raises `InputError` for what is not a regular file (it is not waited for) or is larger
    than `limit` bytes, and `OSError` where it cannot be read."""
    path = place_at(path)
    with opened(path) as stream:
        size = os.fstat(stream.fileno()).st_size if is_local(path) else path.stat().st_size
        if size > limit:
            raise InputError(f"{_size(size)}, and at most {_size(limit)} are read", path=path)
        return stream.read()


@contextmanager
def opened(path: str | Path) -> Iterator[BufferedReader]:
    """Open a regular file for reading. Raises `InputError` for anything else, and `OSError` where it cannot
    be opened."""
    path = place_at(path)
    if not is_local(path):
        if path.is_dir():
            raise InputError("this is a folder, not a file", path=path)
        with path.open("rb") as remote:
            yield remote
        return
    require_regular(path, os.stat(path).st_mode)  # a socket cannot be opened
    # Without O_NONBLOCK, opening what has become a pipe would wait for its writer.
    nonblock = getattr(os, "O_NONBLOCK", 0)
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | nonblock)) as stream:
        require_regular(path, os.fstat(stream.fileno()).st_mode)
        yield stream


def require_regular(path: str | Path, mode: int) -> None:
    """Raise `InputError` where a mode of `stat` is not that of a regular file."""
    if not stat.S_ISREG(mode):
        raise InputError(f"this is {_kind(mode)}, not a file", path=path)


def check_output(path: str | Path, inputs: Iterable[str | Path] = ()) -> Path:
    """Return the path of a file that can be written: a new one, or in place of a regular one.

    Raises `InputError` for a folder, link, device or pipe, for one of the `inputs`, for a file that stores,
    detectors and models are made of, and where nothing can be written.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise InputError("its folder does not exist", path=path)
    _require_replaceable(path)
    if path.exists():
        for source in inputs:
            if os.path.exists(source) and path.samefile(source):
                raise InputError("this is read as input; name another file for the output", path=path)
        if (
            path.name in _PROTECTED_NAMES
            or path.suffix in _PROTECTED_ENDINGS
            or path.name.endswith(".index.json")
        ):
            raise InputError("this file is part of a store, a detector or a model; name another", path=path)
        if not os.access(path, os.W_OK):
            raise InputError("this file is write-protected; name another", path=path)
    try:  # whether there is room for a file is known only once there is one
        with _partial(path) as partial:
            partial.touch(exist_ok=False)
    except OSError as error:
        raise InputError(f"cannot write here: {error.strerror}", path=path) from error
    return path


def check_folder(path: str | Path, *, replace: bool = False) -> Path:
    """Return the path of a folder, or of one that can be made. Raises `InputError` for anything else, and
    for a link or the current folder where the caller will `replace` the folder."""
    path = place_at(path)
    if not is_local(path):
        _try_to_write(path)
        return path
    if replace and path.is_symlink():
        raise InputError("this is a link; name the folder itself", path=path)
    if replace and path.exists() and path.samefile("."):
        raise InputError("this is the folder that the command runs in; name another", path=path)
    if path.is_symlink() and not path.exists():
        raise InputError("this is a link to nothing; name a folder", path=path)
    if path.exists() and not path.is_dir():
        raise InputError("this is no folder; name one", path=path)
    above = path
    while not above.exists():
        above = above.parent
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise InputError("nothing can be written here", path=path)
    return path


def _try_to_write(folder: Path) -> None:
    trial = folder / f".lrp4rag-{secrets.token_hex(8)}.tmp"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        trial.write_bytes(b"")
        trial.unlink()
    except Exception as error:  # each library has errors of its own
        raise InputError(f"nothing can be written here: {first_line(error)}", path=folder) from error


def write_atomically(path: Path, content: bytes | str) -> None:
    """Write a file under a hidden name beside it, then rename it into place."""
    with written_atomically(path) as stream:
        stream.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def written_atomically(path: Path) -> Iterator[BinaryIO]:
    """Open a stream whose content becomes the file at the end; after an error nothing is left.

    Raises `InputError` where something that is no regular file has the name.
    """
    if not is_local(path):
        with tempfile.TemporaryFile(prefix="lrp4rag-") as local:
            yield cast(BinaryIO, local)
            local.seek(0)
            with path.open("wb") as remote:
                shutil.copyfileobj(local, remote)
        return
    _require_replaceable(path)
    with _partial(path) as partial:
        with partial.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)


@contextmanager
def folder_written_whole(folder: Path, *, replace: bool = False) -> Iterator[Path]:
    """Yield a hidden folder to write into, which takes the folder's place at the end; after an error nothing
    is left. Raises `OSError` where another process has filled the folder, unless `replace`, which is atomic
    too."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _partial(folder) as partial, _partial(folder) as old:
        partial.mkdir()
        yield partial
        if replace and folder.exists():
            folder.rename(old)
        try:
            partial.replace(folder)
        except BaseException:
            if old.exists():
                old.rename(folder)
            raise


def remove_leftovers(folder: Path) -> None:
    """Delete the half-written files that killed processes of this program left in a folder of its own, such
    as a store."""
    for entry in os.scandir(folder) if is_local(folder) else ():
        regular = entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False)
        if regular and is_leftover(Path(entry.path)):
            _delete(Path(entry.path))


def is_leftover(path: Path) -> bool:
    """Say whether a process of this program began to write a path and is gone."""
    match = _PARTIAL.fullmatch(path.name)
    if match is None or path.name in _partials:
        return False
    # In containers the number of a process comes again, even at the same time.
    if match[1] != _host() or int(match[2]) == os.getpid():
        return _forgotten(path)
    return not _alive(int(match[2]))


def _forgotten(path: Path) -> bool:
    try:
        return time.time() - path.lstat().st_mtime > FORGOTTEN_AFTER
    except OSError:
        return False


@contextmanager
def _partial(path: Path) -> Iterator[Path]:
    """Yield a hidden path beside a path to write to, and delete what is left there at the end. No name of a
    user looks like it, and no two are the same."""
    partial = path.with_name(f".lrp4rag-{_host()}-{os.getpid()}-{secrets.token_hex(8)}.tmp")
    _partials.add(partial.name)
    try:
        yield partial
    finally:
        _delete(partial)
        _partials.discard(partial.name)


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _host() -> str:
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]


def _require_replaceable(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"cannot write here: {error.strerror}", path=path) from error
    if stat.S_ISDIR(mode):
        raise InputError("this is a folder; name a file", path=path)
    if not stat.S_ISREG(mode):
        raise InputError(f"this is {_kind(mode)}; name a new file, or a plain one", path=path)


def _kind(mode: int) -> str:
    kinds = (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISLNK, "a link"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
    )
    return next((words for holds, words in kinds if holds(mode)), "a device")


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1e5 else f"{count:,} bytes"


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # another user's
        return True
    return True
