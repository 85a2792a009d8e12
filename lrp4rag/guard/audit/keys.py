"""The Ed25519 key that signs checkpoints: a file that only its owner reads, its public half beside it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from lrp4rag.util.errors import InputError
from lrp4rag.util.files import read_bytes, write_atomically

LARGEST = 10_000
"""Bytes of a key file."""


def open_key(path: Path) -> Ed25519PrivateKey:
    """The private key in a file, made with its `.pub` where there is none.

    Raises `InputError` for a file that others can read, that holds no such key, or beside which another
    key's public half lies.
    """
    if not path.exists():
        _create(path)
    if mode := path.stat().st_mode & 0o077:
        raise InputError(
            f"others may use this key (mode {mode:03o}): chmod 600 it, or make a new one", path=path
        )
    try:
        key = load_pem_private_key(read_bytes(path, LARGEST), None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise InputError("this is no private key in PEM without a password", path=path) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError("this is no Ed25519 key", path=path)
    beside = public_path(path)
    if not beside.exists():
        write_atomically(beside, public_pem(key.public_key()))
    elif key_hex(_read_public(beside)) != key_hex(key.public_key()):
        raise InputError(f"this is the public half of another key than {path.name}", path=beside)
    return key


def open_public_key(path: Path) -> Ed25519PublicKey:
    """The public key of a file, or of the private key in it. Raises `InputError` for a file with neither."""
    beside = public_path(path)
    return _read_public(beside if path.suffix != ".pub" and beside.exists() else path)


def public_path(path: Path) -> Path:
    return path.with_name(path.name + ".pub")


def public_pem(key: Ed25519PublicKey) -> str:
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def key_hex(key: Ed25519PublicKey) -> str:
    """The key's 32 bytes in hexadecimal, as checkpoints name it."""
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw).hex()


def _create(path: Path) -> None:
    """Two processes may do so at once: the first one's stays, and is never seen half-written."""
    if not path.parent.is_dir():
        raise InputError("its folder does not exist", path=path)
    pem = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        descriptor, partial = tempfile.mkstemp(dir=path.parent, prefix=".lrp4rag-key-")
    except OSError as error:
        raise InputError(f"cannot write here: {error.strerror}", path=path) from error
    try:
        with open(descriptor, "wb") as stream:  # its mode is 0600
            stream.write(pem)
            stream.flush()
            os.fsync(stream.fileno())
        os.link(partial, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(partial)


def _read_public(path: Path) -> Ed25519PublicKey:
    try:
        key = load_pem_public_key(read_bytes(path, LARGEST))
    except FileNotFoundError as error:
        raise InputError("there is no key here", path=path) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InputError("this is no public key in PEM; name the .pub file", path=path) from error
    if not isinstance(key, Ed25519PublicKey):
        raise InputError("this is no Ed25519 key", path=path)
    return key
