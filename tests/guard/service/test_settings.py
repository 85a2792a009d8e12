"""Settings: from a file, the environment and what is given; each fault is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from lrp4rag.cli.group import TRACEBACK
from lrp4rag.cli.redteam import TOKEN
from lrp4rag.guard.service.access import new_token
from lrp4rag.guard.service.settings import Settings
from lrp4rag.util.errors import InputError
from lrp4rag.util.quiet import QUIET

HASH = "0" * 64


def test_what_is_given_goes_before_the_environment_and_that_before_the_file(tmp_path, monkeypatch) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("port: 1\nhost: localhost\nmodel: a\npolicy:\n  budget: 0.7\n  name: a\n")
    monkeypatch.setenv("LRP4RAG_MODEL", "b")
    monkeypatch.setenv("LRP4RAG_HOST", "::1")
    monkeypatch.setenv("LRP4RAG_POLICY__NAME", "b")
    found = Settings.load(path, model="c", detector=None)
    assert (found.port, found.host, found.model, found.detector) == (1, "::1", "c", "default")
    assert (found.policy.budget, found.policy.name) == (0.7, "b")


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("port: 99999", 1, "less than or equal to 65535"),
        ("port: yes", 1, "a number is needed"),
        ("a: 1\n", 1, "no such field"),
        ("host: localhost\nupstream: ftp://x", 2, "URL scheme"),
        ("policy:\n  budget: 100", 2, "less than or equal to 60"),
        ("policy:\n  budget: .nan", 2, "finite"),
        ("policy:\n  budget: true", 2, "a number is needed"),
        ("policy:\n  rules:\n    omitted: shrug", 3, "'serve', 'mark', 'disclose'"),
        ("tokens:\n  app: abc", None, "SHA-256"),
        ("tokens: [a]", 1, "dictionary"),
        ("host: 0.0.0.0", None, "needs tokens"),
        ("demo: true\nupstream: http://x/v1", None, "one of them"),
        ("seconds: 0", 1, "greater than 0"),
        ("prompt_bytes: false", 1, "a number is needed"),
        ("dtype: int8", 1, "'float32'"),
        ("largest_request: 1", 1, "1024"),
        ("port: [", 1, ""),
        ("audit: 2024-13-45", None, ""),
        ('port: !!int "abc"', None, ""),
        ("port: " + "[" * 700, None, ""),
        ("upstream: http://user:pw@h/v1", None, "upstream_key"),
        ("port: 1\nport: {", 2, ""),
        ("port: 1\nhost: localhost\nport: 2", 3, "again"),
        ("port: 1\npolicy: none.yaml", 2, "none.yaml"),
        ("!!python/object/apply:os.system ['true']", 1, "could not determine a constructor"),
    ],
)
def test_a_fault_is_named_with_its_line(tmp_path: Path, text: str, line: int | None, words: str) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        Settings.load(path)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)
    assert line is None or caught.value.line == line


def test_an_environment_that_is_no_settings(monkeypatch) -> None:
    monkeypatch.setenv("LRP4RAG_POLICY", "foo")
    with pytest.raises(InputError, match="environment"):
        Settings.load(None)


def test_a_list_in_the_environment_is_json_and_the_error_says_so(monkeypatch) -> None:
    monkeypatch.setenv("LRP4RAG_TOPICS", "leave,travel")
    with pytest.raises(InputError, match=r'"topics".*JSON there, such as \["leave", "travel"\]'):
        Settings.load(None)
    monkeypatch.setenv("LRP4RAG_TOPICS", '["leave", "travel"]')
    assert Settings.load(None).topics == ("leave", "travel")


def test_a_variable_that_is_no_setting(monkeypatch) -> None:
    monkeypatch.setenv("LRP4RAG_PROT", "8000")
    with pytest.raises(InputError, match="LRP4RAG_PROT"):
        Settings.load(None)


@pytest.mark.parametrize("name", [TOKEN, TRACEBACK, QUIET, "LRP4RAG_CACHE"])
def test_variables_of_other_commands_may_be_set(monkeypatch, name: str) -> None:
    monkeypatch.setenv(name, "1")
    assert Settings.load(None) == Settings()


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("upstream_key: hunter2\nport: hunter2")
    with pytest.raises(InputError) as caught:
        Settings.load(path)
    assert "hunter2" not in str(caught.value)
    path.write_text("upstream_key: hunter2")
    assert "hunter2" not in repr(Settings.load(path))


def test_tokens_are_random_and_only_their_hash_is_kept() -> None:
    (one, hash), (other, _) = new_token(), new_token()
    assert one != other
    assert one not in hash
    assert Settings.load(None, tokens={"app": hash}, host="0.0.0.0").tokens == {"app": hash}
