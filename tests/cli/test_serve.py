"""`lrp4rag serve` before it serves: checks, tokens, what to type next."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from lrp4rag.cli import main
from lrp4rag.cli.serve import _banner
from lrp4rag.guard.service.access import hash_of_token
from lrp4rag.guard.service.settings import Settings
from tests.guard.service.scripted_upstream import Script, serving


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def serve(*arguments: object):
    """Runs the command; what has the form name=value is a setting of the environment."""
    settings = [str(one).partition("=") for one in arguments if "=" in str(one)]
    environment = {f"LRP4RAG_{name.upper()}": value for name, _, value in settings}
    words = [str(one) for one in arguments if "=" not in str(one)]
    return CliRunner(env=environment).invoke(main, ["serve", *words])


@pytest.mark.usefixtures("default_reader")
def test_a_check_says_what_would_run_and_starts_nothing(tmp_path: Path) -> None:
    with serving(Script(), models=("tall", "small")) as upstream:
        path = tmp_path / "s.yaml"
        path.write_text(
            f"upstream: {upstream}\nupstream_key: hunter2\nmodel: tall\n"
            "policy:\n  claims:\n    unsupported: disclose\n"
        )
        found = serve("--config", path, "--check")
    assert found.exit_code == 0, found.output
    for words in (
        "plain, around",
        "smollm2-135m",
        "contradicted disclose, unsupported disclose, most of it withhold",
        "tall, small",
        "8000",
    ):
        assert words in found.output
    assert "hunter2" not in found.output


@pytest.mark.usefixtures("default_reader")
def test_a_check_says_what_judges_beside_a_reader(reader_folder: Path) -> None:
    found = serve("--demo", f"reader={reader_folder}", "--check")
    assert found.exit_code == 0, found.output
    assert "detector   text:" in found.output
    assert "texts alone" in found.output
    assert "texts alone" not in serve("reader=none", "--check").output
    assert "detector   default:" in serve("reader=smollm2-135m", "--check").output
    assert serve("reader=nowhere", "--check").exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--upstream", "http://127.0.0.1:9/v1"], "does not answer"),
        (["--upstream", "nowhere"], "URL"),
        (["--demo", "--upstream", "http://127.0.0.1:9/v1"], "one of them"),
        (["detector=nowhere"], "nowhere"),
        (["audit=://"], "audit"),
        (["audit=sqlite:////no/such/folder/a.db"], "/no/such/folder"),
        (["audit=oracle://x"], "oracle"),
        (["host=0.0.0.0"], "needs tokens"),
        (["--config", "none.yaml"], "none.yaml"),
        (["--port", "123456"], "123456"),
    ],
)
def test_what_would_not_run_is_told(arguments: list[str], words: str) -> None:
    found = serve(*arguments, "--check")
    assert found.exit_code == 2, found.output
    assert words in found.output
    assert "Traceback" not in found.output


@pytest.fixture
def nothing_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lrp4rag.guard.service.state.load_detector", lambda _: pytest.fail("it was loaded"))


@pytest.mark.usefixtures("nothing_is_loaded")
def test_an_audit_log_that_cannot_be_opened_is_told_before_anything_is_loaded() -> None:
    found = serve("--demo", "audit=sqlite:////no/such/folder/a.db")
    assert found.exit_code == 2
    assert "/no/such/folder" in found.output
    assert "Traceback" not in found.output


@pytest.mark.usefixtures("nothing_is_loaded")
@pytest.mark.parametrize("host", ["127.0.0.1", "taken.invalid"])
def test_an_address_that_cannot_be_had_is_told_before_anything_is_loaded(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LRP4RAG_OPEN", "true")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        found = serve("--demo", f"host={host}", "--port", port)
    assert found.exit_code == 1
    assert f"cannot listen at {host}, port {port}: " in found.output
    assert "Traceback" not in found.output


def test_a_module_of_ours_that_is_missing_is_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lrp4rag.guard.service.app", None)
    found = serve("--demo")
    assert isinstance(found.exception, ImportError)


def test_a_model_that_the_upstream_lacks_is_told() -> None:
    with serving(Script(), models=("tall",)) as upstream:
        found = serve("--upstream", upstream, "--model", "short", "--check")
    assert found.exit_code == 2
    assert "no model 'short': tall" in found.output


def test_a_new_token_comes_with_its_line_for_the_settings() -> None:
    found = serve("--new-token", "app").output
    token = found.split("token, for the client: ")[1].split()[0]
    assert f"  app: {hash_of_token(token)}" in found


def test_the_banner_can_be_typed() -> None:
    lines = _banner(Settings.load(None, demo=True, audit="postgresql://a:secret@h/d"), 1234, "abc")
    assert "http://127.0.0.1:1234" in lines[0]
    assert "secret" not in lines[0]
    curls = [line for line in lines if line.startswith("  curl")]
    assert len(curls) == 2
    assert all("Authorization: Bearer abc" in line for line in curls)
    *_, judge, chat = _banner(Settings.load(None, open=True), 1, None)
    assert "/v1/judge" in judge
    assert "--upstream" in chat
