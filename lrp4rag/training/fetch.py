"""Fetch public labelled sets: a download resumes, and is kept only with the published size and SHA-256."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import cast
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, build_opener

from lrp4rag.util.errors import InputError, LRP4RAGError, first_line
from lrp4rag.util.files import cache_dir, check_folder
from lrp4rag.util.hashes import file_hash
from lrp4rag.util.terminal import say
from lrp4rag.util.text import without_secrets

TIMEOUT, PAUSE = 30.0, 2.0
"""Seconds that a server may be silent, and between two attempts."""
ATTEMPTS = 4
"""Attempts in a row that receive nothing."""
_CHUNK = 2**16
_TRY_AGAIN = (408, 425, 429, 500, 502, 503, 504)


@dataclass(frozen=True, slots=True)
class PublicFile:
    """A published file: its name, bytes and SHA-256."""

    name: str
    size: int
    sha256: str

    def is_at(self, path: Path) -> bool:
        """Say whether a file has the published content."""
        return path.is_file() and path.stat().st_size == self.size and file_hash(path) == self.sha256


@dataclass(frozen=True, slots=True)
class PublicSet:
    """Where a set is published, in files below a URL, and by which licence."""

    url: str
    licence: str
    files: tuple[PublicFile, ...]


PUBLIC = {
    "ragtruth": PublicSet(
        "https://raw.githubusercontent.com/ParticleMedia/RAGTruth/c103204b9ce28d6bbad859304bf30de72b8ed8fe/dataset",
        "MIT, Copyright (c) 2023 Particle Media; Niu et al., ACL 2024, arXiv 2401.00396",
        (
            PublicFile(
                "response.jsonl",
                21_458_735,
                "e4c2e4ac24fff676d8984cc61c35d791612fadc58015335d97dd632375e18073",
            ),
            PublicFile(
                "source_info.jsonl",
                15_117_971,
                "0dffc26ea9f3c1c3d7c7e8336b56ef1646e3cec876edffcca3c9c624d12d578b",
            ),
        ),
    ),
}


class _ConnectionLostError(Exception):
    """A server was not reached, was silent, or broke off."""


def public_set(name: str) -> PublicSet:
    """Return a set by its name; raises `InputError` for an unknown one."""
    if name not in PUBLIC:
        raise InputError(f"no public set '{name}' is known; there are: {', '.join(PUBLIC)}")
    return PUBLIC[name]


def set_folder(name: str) -> Path:
    """Return the folder of the cache that a set is fetched to."""
    return cache_dir() / "data" / name


def fetched_set(name: str) -> Path:
    """Return the folder of a set; raises `InputError` where a file is missing or has another content."""
    folder = set_folder(name)
    for file in public_set(name).files:
        if not file.is_at(folder / file.name):
            reason = "is damaged; delete it, and run" if (folder / file.name).exists() else "is not here; run"
            raise InputError(f"{reason}: lrp4rag data fetch {name}", path=folder / file.name)
    return folder


def fetch(name: str, folder: Path | None = None, mirror: str | None = None) -> Path:
    """Fetch the files of a set that a folder (default: of the cache) lacks, and return the folder; `mirror`
    is a URL that has them in place of the published one.

    Raises `InputError` for an unknown name, a URL that is not of HTTP, and files of other content in the
    folder, which stay; `LRP4RAGError` where the server fails or its content is another than was published.
    What was received of a file is kept as NAME.part until it is complete.
    """
    public, folder = public_set(name), check_folder(folder or set_folder(name))
    url = (mirror or public.url).rstrip("/")
    if urlsplit(url).scheme not in ("http", "https"):
        raise InputError("give a URL that begins with https:// or http://", field="mirror")
    missing = [file for file in public.files if not file.is_at(folder / file.name)]
    for file in missing:
        if os.path.lexists(folder / file.name):
            raise InputError(
                "its content is not what was published; delete or move it", path=folder / file.name
            )
    folder.mkdir(parents=True, exist_ok=True)
    for file in missing:
        say(f"fetching {file.name} ({file.size / 1e6:.1f} MB)", err=True)
        _fetch_file(file, f"{url}/{file.name}", folder)
    return folder


def _fetch_file(file: PublicFile, url: str, folder: Path) -> None:
    partial, shown = folder / f"{file.name}.part", without_secrets(url)
    attempts = ATTEMPTS
    while (start := _size(partial)) < file.size:
        try:
            _receive(file, url, partial, start)
        except _ConnectionLostError as error:
            attempts = ATTEMPTS if _size(partial) > start else attempts - 1
            if not attempts:
                raise LRP4RAGError(
                    f"cannot fetch {shown}: {error}. What was received is kept: run it again to go on. "
                    f"Without a network, copy the file to {folder}, or name a --mirror that is reached"
                ) from error
            time.sleep(PAUSE)
    if not file.is_at(partial):
        partial.unlink()
        raise LRP4RAGError(
            f"{shown} has another content than was published (SHA-256 {file.sha256}); nothing of it is kept"
        )
    partial.replace(folder / file.name)


def _size(partial: Path) -> int:
    return partial.stat().st_size if partial.exists() else 0


def _receive(file: PublicFile, url: str, partial: Path, start: int) -> None:
    """Append what a server sends from a byte on; from the first, where it cannot resume."""
    from tqdm import tqdm

    with _opened(url, partial, start) as response:
        resumed = response.status == 206
        first = start if resumed else 0
        length = response.headers["Content-Length"]
        if length is not None and length.isdecimal() and first + int(length) != file.size:
            partial.unlink(missing_ok=True)
            raise LRP4RAGError(
                f"{without_secrets(url)} has {first + int(length):,} bytes, and {file.size:,} were published"
            )
        bar = tqdm(
            initial=first, total=file.size, unit="B", unit_scale=True, desc=file.name,
            file=sys.stderr, disable=not sys.stderr.isatty(),
        )  # fmt: skip
        with bar, partial.open("ab" if resumed else "wb") as stream:
            while first < file.size and (chunk := _read(response, file.size - first)):
                stream.write(chunk)
                first += len(chunk)
                bar.update(len(chunk))
            stream.flush()
            os.fsync(stream.fileno())
    if first < file.size:
        raise _ConnectionLostError("the connection ended early")


def _opened(url: str, partial: Path, start: int) -> HTTPResponse:
    headers = {"User-Agent": "lrp4rag"} | ({"Range": f"bytes={start}-"} if start else {})
    try:
        # An opener of its own reads the proxies of the environment as it is now.
        response = cast(HTTPResponse, build_opener().open(Request(url, headers=headers), timeout=TIMEOUT))
    except HTTPError as error:
        error.close()
        if error.code in _TRY_AGAIN:
            raise _ConnectionLostError(f"the server answers {error.code} {error.reason}") from error
        if error.code == 416:  # it has no more, and that is too little
            partial.unlink(missing_ok=True)
        raise LRP4RAGError(f"cannot fetch {without_secrets(url)}: {error.code} {error.reason}") from error
    except (OSError, HTTPException) as error:
        raise _ConnectionLostError(first_line(error)) from error
    if response.status == 206 and not response.headers.get("Content-Range", "").startswith(f"bytes {start}-"):
        response.close()
        partial.unlink(missing_ok=True)
        raise _ConnectionLostError("the server sends another part than was asked for")
    return response


def _read(response: HTTPResponse, most: int) -> bytes:
    try:
        return response.read1(min(_CHUNK, most))
    except (OSError, HTTPException) as error:
        raise _ConnectionLostError(first_line(error)) from error
