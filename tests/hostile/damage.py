"""What can happen to a file: other bytes in it, or something else in its place."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

often = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))

NO_JSON = [
    *(b"", b"{", b"nul", b"\xff\xfe\0", b"\0" * 99),
    *(b"NaN", b'{"value": NaN}', b'{"value": 1e999}', b'{"a": 1, "a": 2}'),
    *(b"[" * 100_000, b'{"a":' * 100_000, b"[" * 100_000 + b"]" * 100_000),
    b'{"value": ' + b"9" * 5000 + b"}",
]
NO_RECORD = [*NO_JSON, b"null", b"[]", b"3", b'"text"', b"true"]
"""Of a file that is to hold one JSON object."""

BYTES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "8 bytes": lambda content: content[:8],
    "half": lambda content: content[: len(content) // 2],
    "a byte less": lambda content: content[:-1],
    "a byte more": lambda content: content + b"x",
    "twice": lambda content: content * 2,
    "zeros": lambda content: bytes(len(content)),
    "a long header": lambda content: b"\xff" * 8 + content[8:],
    "text": lambda content: b"hello, this is text",
    "an archive": lambda content: b"PK\x03\x04" + bytes(90),
}
"""Other content of a file whose bytes are known by their hash."""

PLACES = ["pipe", "folder", "full folder", "socket", "dangling link", "loop", "link to a device"]
"""What is no file."""

ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=5), inside, max_size=3),
    max_leaves=6,
)


def put(path: Path, kind: str) -> Path:
    """Make what is no file, in place of a file that may be there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        here = Path.cwd()
        os.chdir(path.parent)  # the name of a socket is short
        try:
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(path.name)
        finally:
            os.chdir(here)
    elif kind.endswith("folder"):
        path.mkdir()
        if kind == "full folder":
            (path / "thesis.tex").write_text("years of work")
    else:
        targets = {"dangling link": "nothing", "loop": path.name, "link to a device": "/dev/zero"}
        path.symlink_to(targets[kind])
    return path


@contextmanager
def replaced(path: Path, content: bytes) -> Iterator[None]:
    """The file with another content, for a while."""
    before = path.read_bytes()
    path.write_bytes(content)
    try:
        yield
    finally:
        path.write_bytes(before)


def flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)
