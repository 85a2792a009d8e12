"""What is in deploy/ runs: the settings are read, the unit and the image start a server that there is."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from json import loads
from pathlib import Path
from typing import Any

import click
import pytest
import uvicorn
import yaml

from benchmarks.ports import free_port
from lrp4rag import Detector
from lrp4rag.cli import main
from lrp4rag.guard.service.access import new_token
from lrp4rag.guard.service.app import create_app
from lrp4rag.guard.service.settings import Settings
from lrp4rag.reader import Reader
from lrp4rag.util.errors import InputError
from tests.cli.plain_detector import plain_detector

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
SETTINGS = DEPLOY / "lrp4rag.yaml"
UNIT = DEPLOY / "lrp4rag.service"
DOCKERFILE = DEPLOY / "Dockerfile"
PREFIX = "/opt/lrp4rag"
IN_SETTINGS = re.compile(r"^( *)#(?=(  )?\w+:)", re.MULTILINE)
"""Before a setting that stands at its default."""


# --- the settings


def all_settings() -> dict[str, Any]:
    """Those of the file, with each one that is commented out."""
    text = IN_SETTINGS.sub(r"\1", SETTINGS.read_text())
    found = yaml.safe_load(text)
    assert isinstance(found, dict)
    return found


def test_the_settings_are_accepted_as_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("LRP4RAG_")]:
        monkeypatch.delenv(name)
    assert Settings.load(SETTINGS) == Settings.load(None)


def test_the_settings_have_every_setting_and_no_other() -> None:
    found = all_settings()
    assert set(found) == set(Settings.model_fields)


def test_what_is_commented_out_is_the_default() -> None:
    examples: dict[str, Any] = {"upstream": None, "tokens": {}, "policy": Settings().policy}
    found = Settings(**(all_settings() | examples))
    assert found == Settings()


def test_a_token_of_the_settings_as_they_tell_it(tmp_path: Path) -> None:
    """Take out the signs before `tokens` and the example below it."""
    text = SETTINGS.read_text().replace("#tokens:\n#  app: ", "tokens:\n  app: ")
    path = tmp_path / "lrp4rag.yaml"
    path.write_text(text)
    assert set(Settings.load(path, host="0.0.0.0").tokens) == {"app"}


# --- what is started


def require_options(command: list[str]) -> None:
    """The command is `lrp4rag serve`, and its options are there."""
    program, name, *rest = command
    assert Path(program).name == "lrp4rag"
    assert isinstance(main, click.Group)
    context = click.Context(main)
    inner = main.get_command(context, name)
    assert inner is not None
    known = {one for option in inner.get_params(context) for one in (*option.opts, *option.secondary_opts)}
    given = [word.partition("=")[0] for word in rest if word.startswith("-")]
    assert given
    assert set(given) <= known


def unit() -> dict[str, list[str]]:
    """The unit's settings, each with all of its values."""
    found: dict[str, list[str]] = {}
    for line in UNIT.read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


def test_the_unit_starts_a_command_that_there_is() -> None:
    (command,) = unit()["ExecStart"]
    require_options(shlex.split(command))


def test_the_unit_waits_for_answers_that_are_being_written() -> None:
    """Their time to end, and as long for the job that runs."""
    assert int(unit()["TimeoutStopSec"][0]) > 2 * Settings().seconds


def test_the_unit_writes_where_it_may() -> None:
    found = unit()
    assert found["WorkingDirectory"] == [f"/var/lib/{found['StateDirectory'][0]}"]
    assert f"LRP4RAG_CACHE=/var/cache/{found['CacheDirectory'][0]}" in found["Environment"]
    assert (found["DynamicUser"], found["NoNewPrivileges"], found["ProtectSystem"]) == (
        ["yes"],
        ["yes"],
        ["strict"],
    )


def test_wrong_settings_are_not_tried_again() -> None:
    assert unit()["RestartPreventExitStatus"] == [str(InputError.exit_code)]


@pytest.fixture
def analyze(tmp_path: Path) -> list[str]:
    """systemd's own check of a unit, and the unit with a command that is on this machine."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    path = tmp_path / UNIT.name
    path.write_text(UNIT.read_text().replace(f"{PREFIX}/bin/lrp4rag", shutil.which("true") or "/bin/true"))
    return ["systemd-analyze", str(path)]


def test_systemd_accepts_the_unit(analyze: list[str]) -> None:
    program, path = analyze
    found = subprocess.run([program, "verify", path], capture_output=True, text=True, check=False, timeout=60)
    assert (found.returncode, found.stderr) == (0, "")


def test_systemd_finds_the_unit_well_confined(analyze: list[str]) -> None:
    program, path = analyze
    command = [program, "security", "--offline=true", "--threshold=25", path]
    found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if "unrecognized option" in found.stderr:
        pytest.skip("this systemd-analyze knows no --offline")
    assert found.returncode == 0, found.stdout[-500:]


# --- the image


def instructions() -> list[tuple[str, str]]:
    """Of the Dockerfile: its words, and what follows each."""
    lines = [line for line in DOCKERFILE.read_text().splitlines() if not line.startswith("#")]
    found = [line.partition(" ") for line in "\n".join(lines).replace("\\\n", "").splitlines() if line]
    return [(word, rest.strip()) for word, _, rest in found]


def last(word: str) -> str:
    return [rest for one, rest in instructions() if one == word][-1]


def stages() -> list[list[tuple[str, str]]]:
    found: list[list[tuple[str, str]]] = []
    for word, rest in instructions():
        if word == "FROM":
            found.append([])
        found[-1].append((word, rest))
    return found


def health_command() -> list[str]:
    """Of HEALTHCHECK, in its exec form."""
    found = loads(last("HEALTHCHECK").partition("CMD ")[2])
    assert isinstance(found, list)
    return found


def test_the_image_starts_a_command_that_there_is() -> None:
    require_options([*loads(last("ENTRYPOINT")), *loads(last("CMD"))])


def test_the_image_runs_as_nobody_and_holds_no_secret() -> None:
    assert int(last("USER")) > 0
    words = [rest for word, rest in instructions() if word in ("ENV", "ARG")]
    assert not re.search("token|key|password|secret", " ".join(words), re.IGNORECASE)


def test_what_the_image_copies_is_there() -> None:
    for word, rest in instructions():
        if word == "COPY" and not rest.startswith("--from"):
            for name in rest.split()[:-1]:
                assert (ROOT / name).exists(), name


def test_the_image_without_a_token_does_not_start() -> None:
    """Others can reach it."""
    (host,) = re.findall(r"LRP4RAG_HOST=(\S+)", last("ENV"))
    with pytest.raises(InputError, match="needs tokens"):
        Settings.load(SETTINGS, host=host)
    assert Settings.load(SETTINGS, host=host, tokens={"app": new_token()[1]}).host == host


@contextmanager
def tiny_server(reader: Reader, folder: Path) -> Iterator[int]:
    """The port of a server with the tiny reader."""
    settings = Settings.load(None, audit=f"sqlite:///{folder / 'audit.db'}", open=True)
    app = create_app(settings, Detector(plain_detector(reader), reader))
    config = uvicorn.Config(app, port=0, log_level="error")
    server, socket = uvicorn.Server(config), config.bind_socket()
    socket.listen()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]}, daemon=True)
    thread.start()
    try:
        yield socket.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(10)


def healthy(command: list[str], port: int) -> bool:
    env = {**os.environ, "LRP4RAG_PORT": str(port)}
    run = subprocess.run(command, env=env, capture_output=True, check=False, timeout=60)
    return run.returncode == 0


def test_the_image_s_health_check_tells_a_server_that_runs_from_one_that_does_not(
    tiny_reader: Reader, tmp_path: Path
) -> None:
    program, *rest = health_command()
    assert program == "python"
    with tiny_server(tiny_reader, tmp_path) as port:
        assert healthy([sys.executable, *rest], port)
    assert not healthy([sys.executable, *rest], port)


@pytest.mark.slow
def test_the_image_s_steps_install_a_server_that_answers(tmp_path: Path) -> None:
    """What the first stage does, in folders of the test's own; then the image's command, with a token, and a
    cache that cannot be written."""
    prefix, source = tmp_path / "opt", tmp_path / "src"
    source.mkdir()
    env = {name: value for name, value in os.environ.items() if not name.startswith(("LRP4RAG_", "PYTHON"))}
    for word, rest in stages()[0]:
        if word == "COPY":
            *names, _ = rest.split()
            for name in names:
                copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
                (source / name).parent.mkdir(parents=True, exist_ok=True)
                copy(ROOT / name, source / name)
        elif word == "RUN":
            step = rest.replace(PREFIX, str(prefix)).replace("python -m venv", f"{sys.executable} -m venv", 1)
            subprocess.run(["sh", "-ec", step], cwd=source, env=env, check=True, timeout=1800)
    shutil.rmtree(source)  # nothing of it is needed any more
    for path in (prefix / "cache").rglob("*"):
        path.chmod(0o500 if path.is_dir() else 0o400)
    token, hash = new_token()
    (tmp_path / "lrp4rag.yaml").write_text(f"{SETTINGS.read_text()}\ntokens: {{app: {hash}}}\n")
    env |= {"LRP4RAG_CACHE": str(prefix / "cache"), "LRP4RAG_PORT": str(free_port())}
    name, *options = loads(last("ENTRYPOINT"))
    with subprocess.Popen(
        [prefix / "bin" / name, *options, "--config", tmp_path / "lrp4rag.yaml"], cwd=tmp_path, env=env
    ) as server:
        try:
            command = [str(prefix / "bin" / "python"), *health_command()[1:]]
            until = time.monotonic() + 180
            while not healthy(command, int(env["LRP4RAG_PORT"])):
                assert server.poll() is None
                assert time.monotonic() < until
            body = (
                b'{"question": "How tall?", "passages": ["It is 31 m tall."], "response": "It is 31 m tall."}'
            )
            request = urllib.request.Request(
                f"http://127.0.0.1:{env['LRP4RAG_PORT']}/v1/judge",
                body,
                {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
            )
            with urllib.request.urlopen(request, timeout=120) as reply:
                assert loads(reply.read())["decision"]["id"]
        finally:
            server.terminate()
