"""The key is its owner's only."""

import stat

import pytest

from lrp4rag.guard.audit import AuditLog
from lrp4rag.guard.audit.chain import key_hex, open_key, open_public_key
from lrp4rag.util.errors import InputError
from tests.guard.audit.conftest import decision


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


def test_another_key_than_the_logs_is_refused(log, key, tmp_path):
    """One checkpoint of another key would make the log count as forged for ever."""
    log.append(decision(1))
    log.checkpoint()
    open_key(tmp_path / "other")
    with pytest.raises(InputError, match="name the file"):
        AuditLog.open(tmp_path / "audit.db", key=tmp_path / "other")
    with AuditLog.open(tmp_path / "audit.db", key=key) as again:
        again.append(decision(2))
    with AuditLog.open(tmp_path / "audit.db") as unsigned:
        unsigned.append(decision(3))
    assert log.verify(open_public_key(key)).whole


@pytest.mark.parametrize("signed", [True, False])
def test_a_key_is_not_made_for_a_log_with_entries(tmp_path, signed):
    path, slip = tmp_path / "audit.db", tmp_path / "audti.key"
    with AuditLog.open(path, key=tmp_path / "audit.key" if signed else None) as log:
        log.append(decision(1))
    with pytest.raises(InputError, match=r"--public --key .*audti\.key"):
        AuditLog.open(path, key=slip)
    assert not slip.exists()
    open_key(slip)  # as the message says
    if signed:
        with pytest.raises(InputError, match="is signed by"):
            AuditLog.open(path, key=slip)
    else:
        AuditLog.open(path, key=slip).close()
        with AuditLog.open(path, read_only=True) as log:
            assert log.verify(open_public_key(slip)).unsigned == 0


def test_of_two_keys_of_an_empty_log_the_first_that_signs_is_its_own(tmp_path):
    path = tmp_path / "audit.db"
    late = AuditLog.open(path, key=tmp_path / "late")
    with AuditLog.open(path, key=tmp_path / "first") as first:
        first.append(decision(1))
    late.append(decision(2))
    for sign in (late.checkpoint, late.close):
        with pytest.raises(InputError, match="is signed by"):
            sign()
    with AuditLog.open(path, read_only=True) as log:
        assert log.verify(open_public_key(tmp_path / "first")).whole
