"""The key is its owner's only."""

import stat

import pytest

from lrp4rag.errors import InputError
from lrp4rag.service.audit.keys import key_hex, open_key, open_public_key


def test_a_key_is_made_once(key):
    first = key_hex(open_key(key).public_key())
    assert first == key_hex(open_key(key).public_key())
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert {first} == {key_hex(open_public_key(path)) for path in (key, key.with_name("audit.key.pub"))}
    assert sorted(path.name for path in key.parent.iterdir()) == ["audit.key", "audit.key.pub"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o777])
def test_a_key_that_others_can_use_is_refused(key, mode):
    open_key(key)
    key.chmod(mode)
    with pytest.raises(InputError, match="chmod 600"):
        open_key(key)


def test_what_is_no_key_is_refused(key, tmp_path):
    open_key(key)
    for content in (b"", b"nothing", b"\xff" * 20_000, key.with_name("audit.key.pub").read_bytes()):
        other = tmp_path / "other"
        other.write_bytes(content)
        other.chmod(0o600)
        with pytest.raises(InputError):
            open_key(other)
    with pytest.raises(InputError):
        open_public_key(other.with_name("none"))
    with pytest.raises(InputError):
        open_key(tmp_path)
    with pytest.raises(InputError, match="folder does not exist"):
        open_key(tmp_path / "none" / "key")


def test_the_public_half_of_another_key_is_refused(key, tmp_path):
    open_key(key)
    open_key(tmp_path / "other")
    (tmp_path / "other.pub").replace(tmp_path / "audit.key.pub")
    with pytest.raises(InputError, match="of another key"):
        open_key(key)
