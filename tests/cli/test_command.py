"""What `--help` shows, and what it costs."""

import os
import resource
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import click
import pytest
from click.testing import CliRunner

from lrp4rag import __version__, cli
from lrp4rag.cli import main
from lrp4rag.cli.command import MOST, Renamed, command
from lrp4rag.util.quiet import QUIET

EXTRACT = {"extract", "train", "evaluate"}
READ = {*EXTRACT, "analyse"}
OLD_WORDS = {"--context", "--jobs", "--resamples", "--work"}


def below(command, *names):
    """Every command by the words that name it, groups too."""
    found = {names: command}
    context = click.Context(command)
    for name in command.list_commands(context) if isinstance(command, click.Group) else ():
        found |= below(command.get_command(context, name), *names, name)
    return found


COMMANDS = below(main)


def options_of(names):
    options = [one for one in COMMANDS[names].params if isinstance(one, click.Option) and not one.hidden]
    return {name: one for one in options for name in (one.opts[:1] if isinstance(one, Renamed) else one.opts)}


def shown(output):
    lines = output.partition("\nOptions:\n")[2].splitlines()
    return [line for line in lines if line.startswith(("  --", "  -h"))]


@pytest.mark.parametrize("names", COMMANDS)
def test_help_shows_a_dozen_options_and_says_where_the_others_are(run, names):
    output, options = run(*names, "--help").stdout, options_of(names)
    assert output.startswith("Usage:")
    assert len(output.splitlines()) > 6
    hidden = len({*options.values()}) - len([line for line in shown(output) if "-h, --help" not in line])
    assert len(shown(output)) <= MOST + 2  # with --help and --help-all
    assert ("--help-all" in options) == (hidden > 0)
    if hidden:
        assert f"{hidden} more options: lrp4rag {' '.join(names)} --help-all" in " ".join(output.split())
        everything = run(*names, "--help-all").stdout
        assert all(f"  {name}" in everything for name in options)


@pytest.mark.parametrize("names", COMMANDS)
def test_options_are_explained_in_the_same_words_everywhere(run, names):
    options = options_of(names)
    assert [name for name, one in options.items() if not one.help] == []
    assert not OLD_WORDS & options.keys()
    if set(names) <= READ and names:
        assert "--max-memory" in options
    if set(names) <= EXTRACT and names:
        assert "--workers" in options


@pytest.mark.parametrize(
    ("name", "options"),
    [
        (
            "analyse",
            "--template --false-positive-rate --dtype --no-chat-template --composite --truncate "
            "--max-new-tokens --workers --address --worker-cpus",
        ),
        (
            "attribute",
            "--template --layer --dtype --no-chat-template --truncate --max-memory",
        ),
    ],
)
def test_options_that_no_help_shows_are_there(run, name, options):
    declared = {option for one in COMMANDS[(name,)].params for option in (*one.opts, *one.secondary_opts)}
    assert {*options.split()} <= declared
    assert not {*options.split()} & {
        word for line in shown(run(name, "--help").stdout) for word in line.split()
    }


def test_help_of_every_command_imports_nothing_heavy_and_takes_less_than_a_second():
    """Processor time: the clock would depend on what else the machine does."""
    code = (
        "import sys\nfrom lrp4rag.cli import main\n"
        f"for words in {[[*names, '--help'] for names in COMMANDS]}:\n"
        "    main(words, standalone_mode=False)\n"
        "heavy = {'torch', 'transformers', 'sklearn', 'numpy', 'pydantic', 'rich', 'seaborn'}\n"
        "sys.exit(' '.join(sorted(heavy & set(sys.modules))) or 0)\n"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert result.returncode == 0, result.stderr
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1


def run_python(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "code", ["import lrp4rag", "from lrp4rag.cli import main; main(['--help'], standalone_mode=False)"]
)
def test_the_package_and_the_list_of_commands_import_none_of_them(code):
    found = (
        run_python(f"{code}\nimport sys\nprint('imported:', *sys.modules)")
        .stdout.split("imported:")[1]
        .split()
    )
    commands = {f"lrp4rag.cli.{path.stem}" for path in Path(cli.__file__).parent.glob("*.py")}
    allowed = {"lrp4rag.cli.__init__", "lrp4rag.cli.group"}
    assert not (commands - allowed | {"torch", "transformers", "numpy", "lrp4rag.guard"}) & {*found}


def test_importing_what_judges():
    """It is waited for before anything is judged: nothing that only learning, plots and pages need is
    imported, and no garbage collected. Workers import all before the command line's code can silence it."""
    code = (
        "import gc, sys, lrp4rag\n"
        "collected = []\n"
        "gc.callbacks.append(lambda phase, _: collected.append(phase) if gc.isenabled() else None)\n"
        "lrp4rag.Detector\n"
        "print(len(collected), gc.isenabled())\n"
        "import lrp4rag.guard.policy\n"
        "print(*sys.modules)\n"
        "import lrp4rag.training.extract\n"
    )
    done = run_python(code, **{QUIET: "1"})
    assert (done.returncode, done.stderr) == (0, "")
    first, second = done.stdout.splitlines()
    count, running = first.split()
    assert int(count) < 4  # with the collector running there are hundreds
    assert running == "True"
    learning = {"sklearn", "scipy.stats", "pandas", "lrp4rag.classifiers.registry", "lrp4rag.training"}
    plots = {"matplotlib", "seaborn", "captum"}
    modules = {*second.split()}
    assert "lrp4rag.judge" in modules
    assert not modules & (learning | plots)


def test_commands_hide_no_modules_of_their_names():
    named = {name: vars(cli)[name] for names in COMMANDS for name in names[:1] if name in vars(cli)}
    assert {"analyse", "train", "serve"} < named.keys()
    assert {type(one) for one in named.values()} == {ModuleType}


@pytest.mark.parametrize(
    ("words", "library"),
    [
        (["audit", "verify"], "sqlalchemy"),
        (["drift"], "sqlalchemy"),
        (["review"], "sqlalchemy"),
        (["feedback", "export", "labels.jsonl"], "sqlalchemy"),
        (["serve", "--demo"], "fastapi"),
    ],
)
def test_a_command_without_its_extra_says_how_to_install_it(words, library):
    code = f"import sys\nsys.modules['{library}'] = None\nfrom lrp4rag.cli import main\nmain({words})"
    done = run_python(code)
    assert done.returncode == 2
    assert library in done.stderr
    assert "pip install 'lrp4rag[serve]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_version(run):
    assert __version__ in run("--version").stdout


@pytest.mark.parametrize("resumes", [True, False])
def test_what_is_interrupted_says_whether_it_goes_on(resumes):
    @command(resumes=resumes)
    def work():
        raise KeyboardInterrupt

    result = CliRunner().invoke(work)
    assert result.exit_code == 1
    assert ("The same command goes on from here." in result.stderr) == resumes
