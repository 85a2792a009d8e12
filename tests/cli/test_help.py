import subprocess
import sys

import pytest

COMMANDS = [
    [],
    ["analyse"],
    ["generate"],
    ["attribute"],
    ["check"],
    ["extract"],
    ["train"],
    ["evaluate"],
    ["detector"],
    ["detector", "info"],
    ["localise"],
]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches(run, command):
    output = run(*command, "--help").stdout
    assert output.startswith("Usage:")
    assert len(output.splitlines()) > 6


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
