import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

from lrp4rag.cli import main

ROOT = Path(__file__).parents[2]
EXTRACT = {"extract", "train", "evaluate"}
NUMBERS = {4: "four", 10: "ten"}


def below(command, *names):
    """Every command by the words that name it, groups too."""
    found = {names: command}
    for name, one in getattr(command, "commands", {}).items():
        found |= below(one, *names, name)
    return found


COMMANDS = below(main)


def options_of(command):
    return {name for one in command.params for name in one.opts}


@pytest.mark.parametrize("names", COMMANDS)
def test_help_teaches(run, names):
    output = run(*names, "--help").stdout
    assert output.startswith("Usage:")
    assert len(output.splitlines()) > 6


@pytest.mark.parametrize("names", COMMANDS)
def test_every_option_is_explained(names):
    options = [one for one in COMMANDS[names].params if isinstance(one, click.Option)]
    assert [one.name for one in options if not one.help] == []


@pytest.mark.parametrize("names", COMMANDS)
def test_only_a_command_with_a_detector_follows_one(run, names):
    follows = "as the detector" in " ".join(run(*names, "--help").stdout.split())
    assert follows == ("--detector" in options_of(COMMANDS[names]))


@pytest.mark.parametrize("names", COMMANDS)
def test_what_extracts_can_share_the_work_and_bound_its_memory(names):
    """The same words everywhere: one definition."""
    options = {one.name: one.help for one in COMMANDS[names].params if isinstance(one, click.Option)}
    if EXTRACT & set(names):
        assert {"workers", "max_memory"} <= options.keys()
        assert options["workers"] == next(
            one.help for one in COMMANDS["extract",].params if one.name == "workers"
        )
    else:
        assert "workers" not in options


def test_the_fast_detector_costs_what_was_measured(run):
    measured = json.loads((ROOT / "docs/results/compare/costs.json").read_text())["systems"]
    fast, full = (NUMBERS[round(measured[name]["forwards"])] for name in ("lrp4rag --fast", "lrp4rag"))
    shown = " ".join(run("analyse", "--help").stdout.split())
    assert f"about {fast} plain forward passes, not {full}" in shown
    readme = (ROOT / "README.md").read_text()
    assert (
        f"about {full} plain forward passes with the bundled detector, about {fast} with `--fast`" in readme
    )


@pytest.mark.parametrize("command", ["analyse", "generate"])
def test_help_imports_nothing_heavy(command):
    """What makes it instant; the time itself would depend on the machine."""
    code = (
        "import sys\nfrom lrp4rag.cli import main\n"
        f"main(['{command}', '--help'], standalone_mode=False)\n"
        "heavy = {'torch', 'transformers', 'sklearn', 'numpy', 'pydantic', 'rich', 'seaborn'}\n"
        "sys.exit(' '.join(sorted(heavy & set(sys.modules))) or 0)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_version(run):
    from lrp4rag import __version__

    assert __version__ in run("--version").stdout
