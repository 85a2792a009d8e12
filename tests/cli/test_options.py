"""The command line with what nobody should type, and data that nobody should send."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lrp4rag.cli import main
from lrp4rag.util.errors import InputError
from tests.hostile.damage import put
from tests.hostile.strings import obeyed
from tests.training.labelled import examples, write_jsonl
from tests.training.quick import few_steps

GOOD = {"question": "When?", "passages": ["In 1874."], "response": "It was 1874."}


def row(**changes: Any) -> str:
    return json.dumps({**GOOD, **changes}) + "\n"


# What is printed.


FEW = ["\x1b[31mred\x1b[0m", "\u202egnp.exe", "\x00nul", "[/INST]"]
"""One of each kind, for commands, which take longer."""


def refused(*words: str) -> str:
    """What the command says of arguments that it does not take."""
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert isinstance(result.exception, SystemExit)
    assert len(result.output) < 3000
    return result.output


@pytest.mark.parametrize("text", FEW)
def test_what_is_typed_wrongly_is_shown(text: str) -> None:
    for words in (
        [text],
        *(["analyse", *rest] for rest in ([f"--{text}"], [f"nowhere{text}"], ["x", "--dtype", text])),
        ["analyse", "x", "--detector", f"nowhere{text}"],
        ["analyse", "x", "--max-memory", text],
        *(
            [*command, f"nowhere{text}"]
            for command in (["card"], ["store", "info"], ["extract", "--store", "s"])
        ),
    ):
        assert not obeyed(refused(*words))


@pytest.mark.parametrize("text", FEW)
def test_examples_are_shown(text: str, run: Any, reader_folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    odd = {"id": text, "generator": text, "source_id": text, "question": f"Q{text}", "passages": [f"P{text}"]}
    data.write_text(
        row(**odd, response=f"It was {text}.") + row(**odd | {"id": f"{text}2"}, response="x" * 4000)
    )
    common = ["--reader", reader_folder, "--detector", "none"]
    result = run("analyse", data, *common, code=2)  # the second one exceeds the window
    assert "exceed" in result.stderr or "than the reader's window" in result.stderr
    assert not obeyed(result.output)
    if "\0" in text:  # no argument holds one
        return
    assert json.loads(run("analyse", data, *common, "--id", text, "--json").stdout)["id"] == text
    shown = [run("analyse", data, *common, "--id", text), run("attribute", data, *common[:2], "--id", text)]
    shown.append(run("analyse", data, *common, "--id", f"no {text}", code=2))
    assert not any(obeyed(result.output) for result in shown)


@pytest.mark.parametrize("text", FEW[:3])
def test_what_a_store_holds_is_shown(text: str, run: Any, reader_folder: Path, tmp_path: Path) -> None:
    data, store = tmp_path / "data.jsonl", tmp_path / "store"
    data.write_text(row(id=text, generator=text) + row(id=f"{text}2", generator=text, response="x" * 4000))
    result = run("extract", data, "--store", store, "--reader", reader_folder, "--parts", "relevance", code=1)
    assert not obeyed(result.output)
    result = run("store", "info", store)
    assert not obeyed(result.output)
    assert "tokens exceed the reader's" in result.output  # it tells what failed, and why
    result = run("extract", data, "--store", store, "--reader", reader_folder, "--generator", "other", code=2)
    assert not obeyed(result.output)


# Numbers.


NUMBERS = [
    ["generate", "x", "--temperature"],
    ["generate", "x", "--temperature", "1", "--top-p"],
    ["check", "--tolerance"],
    ["analyse", "x", "--false-positive-rate"],
    ["generate", "x", "--stop-below"],
]


@pytest.mark.parametrize("words", NUMBERS, ids=lambda words: words[-1])
def test_numbers_that_are_none(words: list[str]) -> None:
    for value in ("nan", "NaN", "inf", "-inf", "1e999", "-1", "x", "", " ", "0x1", "1_0e"):
        if (words[-1], value) != ("--stop-below", "-1"):
            assert words[-1] in refused(*words, value)


SIZES = ["9" * 400, "1" + "0" * 30, "0", "0GB", "0.0001", "-1", "nan", "inf", "1e9", "4 G B", "4XB"]


@pytest.mark.parametrize("value", [*SIZES, "GB", "four", "", "٤GB"])
def test_sizes_that_are_none(value: str) -> None:
    assert "one such as 4GB" in refused("analyse", "x", "--max-memory", value)


@pytest.mark.parametrize("temperature", ["1e-300", "5e-324", "1e-30", "1e-6", "1e300"])
def test_any_temperature_gives_a_response(
    temperature: str, run: Any, reader_folder: Path, example_file: Path
) -> None:
    common = ["generate", example_file, "--reader", reader_folder, "--max-new-tokens", 4, "--json"]
    drawn = json.loads(run(*common, "--temperature", temperature, "--seed", 1).stdout)
    assert len(drawn["tokens"]) == 4
    if float(temperature) < 1e-5:
        assert drawn["response"] == json.loads(run(*common).stdout)["response"]


@pytest.mark.parametrize(
    "words",
    [
        ["analyse", "x", "--max-new-tokens", "0"],
        ["generate", "x", "--temperature", "1", "--seed", "-1"],
        ["generate", "x", "--temperature", "1", "--seed", "9" * 400],
        ["generate", "x", "--temperature", "1", "--top-k", "0"],
        ["attribute", "x", "--layer", "-1"],
        ["extract", "x", "--store", "s", "--workers", "0"],
        ["extract", "x", "--store", "s", "--limit", "0"],
        *(["extract", "x", "--store", "s", "--allow-failures", word] for word in ("some", "nan")),
    ],
    ids=lambda words: " ".join(words)[:60],
)
def test_counts_that_are_none(words: list[str]) -> None:
    assert words[-2] in refused(*words)


@pytest.mark.parametrize("option", ["--question", "--id", "--reader", "--device", "--response", None])
def test_arguments_in_no_utf8(option: str | None) -> None:
    for word in (b"\xff", b"caf\xe9", b"\x80--"):
        words = [os.fsdecode(word)] if option is None else [option, os.fsdecode(word)]
        assert "is not valid UTF-8" in refused("analyse", *words)


# Outputs.


@pytest.mark.parametrize("kind", ["pipe", "dangling link", "manifest.json", "input"])
@pytest.mark.parametrize("command", ["analyse --html", "analyse --png", "attribute --png"])
def test_outputs_are_refused_before_the_work(
    command: str, kind: str, run: Any, example_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("the reader was loaded first")

    monkeypatch.setattr("lrp4rag.reader.load_reader", fail)
    path = {"input": example_file, "manifest.json": tmp_path / kind}.get(kind, tmp_path / "out")
    if kind == "manifest.json":
        path.write_text("{}")
    elif kind != "input":
        put(path, kind)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    name, option = command.split()
    result = run(name, example_file, option, path, code=2)
    assert path.name[:50] in result.stderr
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_passages_and_templates_are_inputs_too(run: Any, tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("In 1874.")
    (tmp_path / "t.txt").write_text("{context} {question}")
    parts = ["--question", "Q", "--passage", f"@{tmp_path / 'p.txt'}", "--template", tmp_path / "t.txt"]
    for name in ("p.txt", "t.txt"):
        result = run("analyse", *parts, "--html", tmp_path / name, code=2)
        assert "read as input" in result.stderr
    assert (tmp_path / "p.txt").read_text() == "In 1874."


@pytest.mark.parametrize(
    "words",
    [
        "analyse DATA --policy FILE --html FILE",
        "analyse DATA --policy FILE --png ./x/../FILE",
        "attribute DATA --reader FILE --png FILE",
        "evaluate DATA --baseline FILE --out FILE",
        "evaluate DATA --policy FILE --out FILE",
        "evaluate DATA --detector FILE --out FILE",
        "corrupt FILE --out FILE",
    ],
)
def test_nothing_that_a_command_is_given_is_written_over(
    words: str, run: Any, example_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").mkdir()
    (tmp_path / "FILE").write_text("name: mine\n")
    given = [str(example_file) if word == "DATA" else word for word in words.split()]
    assert "read as input" in run(*given, code=2).stderr
    assert (tmp_path / "FILE").read_text() == "name: mine\n"


@pytest.mark.parametrize(
    "words",
    [
        "analyse DATA --html -",
        "attribute DATA --png -",
        "evaluate DATA --out -",
        "extract DATA --store -",
        "train DATA --store s --out -",
        "store merge s --out -",
        "store export s --out -",
        "corrupt DATA --out -",
        "redteam --out -",
        "drift --html -",
        "review --out -",
        "feedback export -",
        "audit export -",
        "audit checkpoint --public --key -",
    ],
)
def test_no_output_is_called_dash(
    words: str, run: Any, example_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = [str(example_file) if word == "DATA" else word for word in words.split()]
    before = set(tmp_path.iterdir())
    result = run(*given, code=2)
    assert "'-' is no file" in result.stderr
    assert set(tmp_path.iterdir()) == before


def test_standard_input_from_a_file_is_an_input(run: Any, example_file: Path) -> None:
    before = os.dup(0)
    with example_file.open("rb") as stream:
        os.dup2(stream.fileno(), 0)
    try:
        assert "read as input" in run("analyse", "-", "--html", example_file, code=2).stderr
    finally:
        os.dup2(before, 0)
        os.close(before)
    assert example_file.read_text().startswith("{")


@pytest.mark.parametrize(
    ("out", "store"), [("s", "s"), ("t", "t/s"), ("u/relevance/d", "u"), ("./s/../s", "s")]
)
def test_a_detector_and_a_store_are_two_folders(
    out: str, store: str, run: Any, labelled_file: Path, tmp_path: Path
) -> None:
    result = run("train", labelled_file, "--out", tmp_path / out, "--store", tmp_path / store, code=2)
    assert "neither is in the" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", FEW[:3])
def test_a_page_shows_text_and_obeys_none(text: str, run: Any, reader_folder: Path, tmp_path: Path) -> None:
    data, page = tmp_path / "data.json", tmp_path / "page.html"
    data.write_text(row(id=text, question=f"Q{text}", passages=[f"P{text}"], response=f"It was {text}."))
    run("analyse", data, "--reader", reader_folder, "--detector", "none", "--html", page)
    assert not obeyed(page.read_text(encoding="utf-8").replace("\t", ""))


# Files of users beside what is written.


def test_no_command_deletes_what_lies_beside_its_output(
    run: Any, reader_folder: Path, example_file: Path, tmp_path: Path
) -> None:
    mine = [".notes.tmp", ".thesis.1.tmp", f".card.json.{10**10 - 1}.tmp"]
    for name in mine:
        (tmp_path / name).write_text("years of work")
    store, labelled_file = tmp_path / "new-store", write_jsonl(examples(4), tmp_path / "train.jsonl")
    common = ["--reader", reader_folder]
    run("analyse", example_file, *common, "--detector", "none", "--html", tmp_path / "page.html")
    run("extract", labelled_file, "--store", store, *common, "--parts", "relevance,segments")
    for name in mine:
        (store / name).write_text("years of work")
        (store / "relevance" / name).write_text("years of work")
    run("extract", labelled_file, "--store", store, *common, "--parts", "relevance,segments")
    run("store", "merge", store, "--out", tmp_path / "merged")
    run("store", "info", store)
    folders = (tmp_path, store, store / "relevance")
    assert all((folder / name).read_text() == "years of work" for folder in folders for name in mine)


# Batches.


def test_one_response_of_another_size_does_not_end_the_batch(
    run: Any, reader_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lrp4rag.reader.reader import Reader

    encode = Reader.with_response

    def broken(self: Reader, prompt: Any, response: str, **options: Any) -> Any:
        if response == "It was b.":
            raise IndexError("index out of range in self")
        return encode(self, prompt, response, **options)

    monkeypatch.setattr(Reader, "with_response", broken)
    data = tmp_path / "data.jsonl"
    data.write_text("".join(row(id=id, response=f"It was {id}.") for id in "abc"))
    result = run("analyse", data, "--reader", reader_folder, "--detector", "none", "--json", code=1)
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == ["a", "c"]
    assert "Error: example 'b': index" in result.stderr
    result = run("extract", data, "--reader", reader_folder, "--store", tmp_path / "s", code=1)
    assert "2 computed" in result.stdout


def test_a_closed_standard_input_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from lrp4rag.data import load_examples

    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputError, match="standard input: it is closed"):
        load_examples("-")


def test_a_closed_standard_output_is_a_failure() -> None:
    """What is printed would be lost."""
    done = subprocess.run(
        f"{sys.executable} -m lrp4rag policy list >&-",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Error: standard output is closed")


def test_what_nobody_expected_is_an_error_in_two_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise KeyError("\x1b[31mwhat")

    monkeypatch.setattr("lrp4rag.data.load_examples", fail)
    monkeypatch.delenv("LRP4RAG_TRACEBACK")
    result = CliRunner().invoke(main, ["analyse", "x"])
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert result.stderr.startswith("Error: KeyError: ")
    assert "LRP4RAG_TRACEBACK=1" in result.stderr
    assert not obeyed(result.output)
    monkeypatch.setenv("LRP4RAG_TRACEBACK", "1")
    assert isinstance(CliRunner().invoke(main, ["analyse", "x"]).exception, KeyError)


@pytest.fixture
def common(reader_folder: Path, tmp_path: Path) -> list[Any]:
    data = write_jsonl(examples(10), tmp_path / "data.jsonl")
    return ["train", data, "--store", tmp_path / "s", "--out", tmp_path / "d", "--reader", reader_folder]


def test_options_are_read_of_a_file_and_of_the_command_line_first(
    run: Any, common: list[Any], tmp_path: Path
) -> None:
    """JSON is YAML too."""
    config = tmp_path / "train.json"
    config.write_text(
        json.dumps({"vector": "response", "length": 9, "chat_template": False, "bootstrap": 10})
    )
    with few_steps():
        run(*common, "--config", config, "--length", 11, "--workers", 1)
    card = json.loads((tmp_path / "d" / "card.json").read_text())
    assert (card["input"]["vector"], card["input"]["length"]) == ("response", 11)
    assert not card["reader"]["chat_template"]
    assert "10 resamples" in card["evidence"]["protocol"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("length: 9\nlenght: 8\n", "line 2"),
        ("length: nine", "'--length'"),
        ("resampling: other", "'other' is not one of"),
        ("- length", "mapping"),
        ("length: [", "line 1"),
    ],
)
def test_what_is_no_option_or_no_value_of_it_is_refused(
    run: Any, common: list[Any], tmp_path: Path, text: str, message: str
) -> None:
    config = tmp_path / "train.yaml"
    config.write_text(text)
    assert message in run(*common, "--config", config, code=2).stderr
    assert not (tmp_path / "s").exists()
