"""The command, end to end, on a small store; killed, and run again."""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import pandas as pd
import pytest
from click.testing import CliRunner

from experiments.cli import SECTIONS_OF_PAPER as NAMES
from experiments.cli import main
from experiments.paper import data
from experiments.paper.manifest import read
from experiments.paper.run import SECTIONS, _extraction
from lrp4rag.example import Label
from lrp4rag.util.errors import InputError
from tests.experiments.paper.stores import LARGE, SMALL, examples, store

OPTIONS = ["--bootstrap", "20", "--workers", "1"]


def run(*arguments, code=0):
    result = CliRunner().invoke(main, ["reproduce", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture(scope="module", autouse=True)
def few_lengths():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data, "Settings", partial(data.Settings, sweep=(125, 220, 250)))
        yield


@pytest.fixture(scope="module")
def made(full_store, tmp_path_factory, cache):
    """Everything, with one variant."""
    folder = tmp_path_factory.mktemp("made")
    variant = store(folder / "Variant", composite="cp_lrp", parts=(), seed=3)
    arguments = ["--store", full_store, "--variant", f"rules-cp_lrp={variant}", "--out", folder / "out"]
    arguments += ["--cache", cache, *OPTIONS]
    run(*arguments)
    return folder, arguments


def results_in(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.glob("*.json")}


def test_the_command_knows_the_sections():
    assert tuple(SECTIONS) == NAMES


def test_the_page_shows_everything_and_every_link_leads_somewhere(made):
    out = made[0] / "out"
    page = (out / "README.md").read_text()
    links = {link for link in re.findall(r"\]\(([^)#]+)\)", page) if not link.startswith("http")}
    assert [link for link in links if not (out / link).is_file()] == []
    shown = {path.name for path in out.iterdir()} - {"README.md", "manifest.json"}
    assert {name for name in shown if not name.endswith(".md")} <= links
    for title in (
        "In short",
        "Table 2",
        "Tables 1 and 5",
        "Tables 3 and 4",
        "Figures 2 to 5",
        "One change at a time",
    ):
        assert f"## {title}" in page
    for word in ("nan", "None", "undefined", "{{", "{%"):
        assert word not in page
    assert "\n\n\n\n" not in page
    assert (
        "python -m experiments extract DATA --store full --reader tiny "
        "--parts relevance,signals,prompt,matrix-64x16\n" in page
    )
    assert "lrp4rag extract DATA --store Variant --reader tiny --composite cp_lrp --parts relevance\n" in page


def test_a_page_of_ones_own_data_has_no_empty_section_and_no_dead_link(tmp_path, cache):
    """One generator that the paper does not have, no span that is true, no baseline, and no other store."""
    rows = [
        replace(one, labels=tuple(Label(one.start, one.end) for one in one.labels or ()))
        for one in examples(generators=("ours",))
    ]
    mine, out = store(tmp_path / "mine", rows, parts=()), tmp_path / "out"
    arguments = ["--store", mine, "--out", out, "--cache", cache, *OPTIONS]
    run(*arguments)
    page = (out / "README.md").read_text()
    links = {link for link in re.findall(r"\]\(([^)#]+)\)", page) if not link.startswith("http")}
    assert [link for link in links if not (out / link).is_file()] == []
    places = set(re.findall(r"\]\(#([^)]+)\)", page))
    titles = re.findall(r"^#+ (.+)$", page, flags=re.MULTILINE)
    assert places <= {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}
    for title in ("the paper's baselines", "Transfer between generators", "Spans that are true"):
        assert not [one for one in titles if title in one]
    assert not re.search(r"^(#+) .+\n\s*(\1 |\Z)", page, flags=re.MULTILINE), "a title without a text"
    assert "* Transfer between generators: these are responses of one." in page
    assert "The paper has no figures for these generators." in page
    assert not list(out.glob("transfer*"))
    # Where the documentation stands beside it, it is linked.
    beside = tmp_path / "experiments" / "results" / "ours"
    (tmp_path / "docs" / "confounds.md").parent.mkdir()
    (tmp_path / "docs" / "confounds.md").write_text("# Confounds\n")
    run("--store", mine, "--out", beside, "--cache", cache, *OPTIONS, "--section", "table2")
    page = (beside / "README.md").read_text()
    assert "[Confounds](../../../docs/confounds.md)" in page
    assert "## In short" not in page


@pytest.mark.parametrize(
    ("changed", "extras", "generators", "words"),
    [
        ({}, (), (), "--parts relevance"),
        ({"composite": "paper"}, ("prompt",), (), "--composite paper --parts relevance,prompt"),
        ({"truncation": "passages"}, (), ("a b",), "--truncate passages --parts relevance --generator 'a b'"),
        ({"chat_template": False}, (), (), "--no-chat-template --parts relevance"),
        (
            {"name": "/x/mine", "dtype": "bfloat16"},
            (),
            (),
            "--reader mine --dtype bfloat16 --parts relevance",
        ),
        ({}, ("matrix-64x16",), (), "--parts relevance,matrix-64x16"),
    ],
)
def test_the_command_that_makes_a_store_is_told_from_it(changed, extras, generators, words):
    reader = {"name": "smollm2-135m", "dtype": "float32", "chat_template": True}
    reader |= {name: value for name, value in changed.items() if name in reader}
    made = {"composite": "attnlrp", "truncation": "error"} | changed | {"reader": reader}
    configuration = SimpleNamespace(as_dict=lambda: made)
    store = SimpleNamespace(folder=Path("s"), configuration=configuration)
    assert _extraction(store, extras, generators) == f"lrp4rag extract DATA --store s {words}"


def test_tables_of_the_page_are_also_files_of_their_own(made):
    out = made[0] / "out"
    page = (out / "README.md").read_text()
    tables = sorted(path.name for path in out.glob("*.md") if path.name != "README.md")
    assert f"table2-{SMALL}-honest.md" in tables
    assert [name for name in tables if (out / name).read_text().strip() not in page] == []


def test_the_pages_numbers_are_the_results(made):
    out = made[0] / "out"
    numbers = pd.read_csv(out / "table2.csv")
    honest = numbers.query(f"generator == '{SMALL}' and protocol == 'honest' and metric == 'auroc'")
    line = honest.query("name == 'svm on R_response'").iloc[0]
    words = f"{line.value:.3f} [{line.low:.2f}, {line.high:.2f}]"
    row = next(
        row
        for row in (out / f"table2-{SMALL}-honest.md").read_text().splitlines()
        if "svm on R_response " in row
    )
    assert words in row
    best = numbers.query(
        f"generator == '{LARGE}' and name.str.contains('by accuracy') and metric == 'accuracy'"
    ).iloc[0]
    page = (out / "README.md").read_text()
    assert "69.9 % accuracy (lstm)" in page
    assert f"{100 * best.value:.1f} % [{100 * best.low:.1f}, {100 * best.high:.1f}]" in page


def test_what_is_left_out_links_to_other_results(made, bare_store, full_store, cache, tmp_path):
    folder, _ = made
    other = tmp_path / "b) [evil](x"
    shutil.copytree(folder / "out", other)
    few = ["--cache", cache, *OPTIONS, "--section", "thresholds", "--beside", other]
    run("--store", bare_store, *few, "--out", tmp_path / "bare")
    page = (tmp_path / "bare" / "README.md").read_text()
    (line,) = (line for line in page.splitlines() if "R_prompt of" in line and "30 responses" in line)
    links = re.findall(r"(?<!\\)\]\(([^)]+)\)", line)
    assert [(tmp_path / "bare" / unquote(link)).resolve() for link in links] == [other / "README.md"]
    part, matrix = line.split(": ")[1].split("; ")
    assert part == f"R_prompt of {SMALL} (30 responses), {LARGE} (30 responses)"
    assert matrix.startswith("R* (")
    # A page that lacks nothing of what the other has does not name it.
    run("--store", full_store, *few, "--out", tmp_path / "full")
    assert "other pages have a part" not in (tmp_path / "full" / "README.md").read_text()


@pytest.mark.parametrize(
    ("record", "field"),
    [
        ({}, "kind"),
        ({"kind": "another"}, "kind"),
        ({"generators": {}}, "generators"),
        ({"generators": {"a": {"rows": 3}}}, "generators.a.parts"),
        ({"generators": {"a": {"rows": -5, "parts": []}}}, "generators.a.rows"),
        ({"generators": {"a": {"rows": 3.9, "parts": []}}}, "generators.a.rows"),
        ({"generators": {"a": {"rows": 3, "parts": "prompt"}}}, "generators.a.parts"),
        ({"baselines": "abc"}, "baselines"),
        ({"baselines": [None]}, "baselines[0]"),
    ],
)
def test_a_manifest_that_does_not_say_what_it_is_of_is_refused(record, field, tmp_path):
    whole = {"kind": "python -m experiments reproduce", "generators": {"a": {"rows": 3, "parts": []}}}
    whole |= {"baselines": [], "seconds": {}}
    (tmp_path / "manifest.json").write_text(json.dumps(record and whole | record))
    with pytest.raises(InputError, match="make it again") as refused:
        read(tmp_path)
    assert refused.value.field == field


def test_other_results_without_a_manifest_are_refused_before_anything_is_computed(bare_store, tmp_path):
    (tmp_path / "other").mkdir()
    run("--store", bare_store, "--beside", tmp_path / "other", "--out", tmp_path / "out", code=2)
    assert not (tmp_path / "out").exists()


def test_the_manifest_has_a_hash_of_every_file_and_no_place_on_the_machine(made):
    folder, _ = made
    out = folder / "out"
    text = (out / "manifest.json").read_text()
    manifest = json.loads(text)
    files = {path.name for path in out.iterdir()} - {"manifest.json"}
    assert set(manifest["outputs"]) == files
    for name, digest in manifest["outputs"].items():
        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == digest
    assert set(manifest["seconds"]) == set(SECTIONS)
    assert manifest["command"].startswith(
        "python -m experiments reproduce --store full --variant rules-cp_lrp=Variant --out out"
    )
    assert set(manifest["stores"]) == {"main", "rules-cp_lrp"}
    assert manifest["generators"][SMALL]["rows"] == 30
    everything = "".join(
        path.read_text() for path in out.iterdir() if path.suffix in (".md", ".json", ".csv", ".svg")
    )
    for place in (str(folder), str(Path.cwd()), "/tmp", "/home"):
        assert place not in everything


def test_a_second_run_computes_nothing_and_writes_the_same(made, cache, tmp_path):
    """Of some sections, for drawing all of them takes long."""
    folder, arguments = made
    before, written = results_in(cache), read_all(folder / "out")
    sections = [word for name in ("table2", "thresholds") for word in ("--section", name)]
    run(*arguments, "--out", tmp_path / "out", *sections)
    assert results_in(cache) == before
    again = read_all(tmp_path / "out")
    del again["README.md"]
    assert len(again) > 3
    assert again == {name: written[name] for name in again}


def test_one_generator_alone_and_what_is_no_longer_made_is_removed(bare_store, tmp_path):
    out = tmp_path / "out"
    arguments = ["--store", bare_store, "--out", out, "--cache", tmp_path / "cache"]
    arguments += ["--section", "length", *OPTIONS]
    run(*arguments)
    assert (out / f"length-{LARGE}.png").is_file()
    run(*arguments, "--generator", SMALL)
    assert not (out / f"length-{LARGE}.png").exists()
    page = (out / "README.md").read_text()
    assert LARGE not in page
    assert "`python -m experiments extract DATA --store STORE --parts relevance,signals,prompt`" in page


def test_a_store_with_r_response_only_has_every_section(bare_store, tmp_path, cache):
    run("--store", bare_store, "--out", tmp_path / "out", "--cache", cache, "--generator", LARGE, *OPTIONS)
    page = (tmp_path / "out" / "README.md").read_text()
    assert "not tested, see below" in page
    assert "R* is not stored for every row." in page
    assert "R_prompt is not stored." in page
    assert "--composite paper" in page


def test_bad_input_is_refused(bare_store, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "README.md").write_text("mine")
    base = ["--store", bare_store, "--cache", tmp_path / "cache", "--section", "thresholds", "--out"]
    assert "did not write" in run(*base, tmp_path / "mine", code=2)
    assert (tmp_path / "mine" / "README.md").read_text() == "mine"
    out = tmp_path / "out"
    assert "there are: llama-2-13b-chat" in run(*base, out, "--generator", "gpt-9", code=2)
    assert "NAME=FOLDER" in run(*base, out, "--variant", "raw", code=2)
    assert "given twice" in run(*base, out, *(["--variant", f"raw={bare_store}"] * 2), code=2)
    for given, words in (
        ("selfcheck-ngram=few", "NAME=SOURCES, 10 or more, got 'selfcheck-ngram=few'"),
        ("fine-tuned-llm=9", "NAME=SOURCES, 10 or more"),
        ("length=20", "length has all responses"),
        ("mine", "mine"),
    ):
        assert words in run(*base, out, "--baseline", given, code=2)
    few = store(tmp_path / "few", [])
    assert "no labelled response" in run("--store", few, "--out", out, code=2)


def test_a_killed_run_goes_on_where_it_was(bare_store, tmp_path):
    arguments = ["--store", str(bare_store), "--generator", SMALL, "--section", "length", *OPTIONS]
    arguments += ["--out", str(tmp_path / "out")]
    cache = tmp_path / "cache"
    command = [sys.executable, "-m", "experiments", "reproduce", *arguments, "--cache", str(cache)]
    process = subprocess.Popen(command, env=os.environ, stderr=subprocess.DEVNULL)
    while process.poll() is None and len(results_in(cache)) < 3:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    done = results_in(cache)
    assert len(done) >= 3
    assert not (tmp_path / "out" / "README.md").exists()
    run(*arguments, "--cache", cache)
    after = results_in(cache)
    assert {name: after[name] for name in done} == done
    assert (tmp_path / "out" / "README.md").exists()


def read_all(folder: Path) -> dict[str, bytes]:
    """Every file but the manifest, which has the seconds."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "manifest.json"}
