"""Everything a user can get wrong: a message that names the place, exit code 2, and no traceback."""

import errno
import json
import shlex

import pytest
import torch

from tests.training.labelled import examples, write_jsonl

GOOD = {"question": "When?", "passages": ["In 1874."], "response": "It was 1874."}


def changed(**fields):
    return json.dumps({name: value for name, value in {**GOOD, **fields}.items() if value is not ...})


@pytest.mark.parametrize(
    ("content", "messages"),
    [
        (f"{changed()}\n{changed()}\n{{oops\n", ["line 3", "invalid JSON at column 2"]),
        (
            changed(labels=[{"start": 3, "end": 99}]),
            ["line 1", "field 'labels[0]'", "3..99 lies outside the response, which has 12 characters"],
        ),
    ],
)
def test_bad_rows(run, tmp_path, content, messages):
    """A few of them: tests/test_data.py has every fault of a row."""
    path = tmp_path / "data.jsonl"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    result = run("analyse", path, code=2)
    assert result.stdout == ""
    assert result.stderr.startswith(f"Error: {path}")
    for message in messages:
        assert message in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("analyse nowhere.jsonl", "nowhere.jsonl: no such file"),
        ("generate nowhere.jsonl", "no such file"),
        ("analyse {tmp}/empty", "it has no source_info.jsonl"),
        ("analyse", "give DATA, or --question"),
        ("generate", "give DATA, or --question"),
        ("analyse --question Q", "give DATA, or --question"),
        ("analyse {example} --response x", "not both"),
        ("analyse --question Q --passage @none.txt", "none.txt: no such file"),
        ("analyse --question Q --passage @", "field '--passage': no file is named after the @"),
        ("analyse --question Q --passage ' '", "field '--passage': the passage is empty"),
        ("analyse --question Q --passage x --passage @{tmp}/blank.txt", "blank.txt, field '--passage'"),
        ("analyse --question '' --passage x", "field '--question': the question is empty"),
        ("analyse --question Q --passage x --response ' '", "field '--response': the response is empty"),
        ("analyse {example} --model x", "Did you mean '--reader'?"),
        ("attribute {example} --llm x", "Did you mean '--reader'?"),
        ("analyse --query Q", "Did you mean '--question'?"),
        ("analyse --question Q --context x", "Did you mean '--passage'?"),
        ("analyse --threshold 0.5", "(Did you mean one of: '--false-positive-rate', '--operating-point'?)"),
        ("analyse {example} --fail", "Did you mean '--fail-on-hallucination'?"),
        ("attribute --threshold 0.5", "No such option '--threshold'.\n"),
        ("analyse --question Q --passage @{tmp}/latin1.txt", "latin1.txt, line 1: invalid UTF-8"),
        ("analyse {example} --html {tmp}/no/page.html", "its folder does not exist"),
        ("analyse {example} --html /proc/page.html", "/proc/page.html: cannot write here"),
        ("analyse {example} --png {tmp}", "this is a folder"),
        ("analyse {example} --html {tmp}/x --png {tmp}/x", "name the same file"),
        ("analyse {example} --html {tmp}/x --png {tmp}/./x", "name the same file"),
        ("analyse {example} --html {tmp}/x --png {tmp}/empty/../x", "name the same file"),
        ("analyse {many} --html {tmp}/x", "--html and --png show one example and there are 2; add --id"),
        ("attribute {many} --png {tmp}/x", "--png shows one example and there are 2; add --id"),
        ("analyse {example} --detector none --fail-on-hallucination", "needs a detector"),
        ("analyse {example} --detector none --operating-point balanced", "needs a detector"),
        ("analyse {example} --detector none --policy {tmp}/p.yaml", "needs a detector"),
        ("evaluate {example} --detector none", "needs a detector"),
        ("analyse {example} --operating-point balanced --false-positive-rate 0.1", "give one"),
        ("analyse {example} --false-positive-rate 1.5", "--false-positive-rate"),
        ("analyse {example} --detector none --reader nobody/nothing", "cannot load reader 'nobody/nothing'"),
        ("analyse {example} --detector none --reader {reader} --device gpu", "unknown device 'gpu'"),
        ("analyse {example} --detector none --reader {reader} --device meta", "unknown device 'meta'"),
        ("attribute {example} --reader {reader} --layer 9", "from 0 to 1"),
        ("card {tmp}", "no detector here"),
        ("card --json --markdown", "two ways"),
    ],
)
def test_bad_usage(run, reader_folder, example_file, tmp_path, words, message):
    (tmp_path / "empty").mkdir()
    (tmp_path / "blank.txt").write_text(" \n")
    (tmp_path / "latin1.txt").write_bytes(b"caf\xe9")
    many = write_jsonl(examples(2), tmp_path / "many.jsonl")
    places = {"tmp": tmp_path, "example": example_file, "many": many, "reader": reader_folder}
    result = run(*(word.format(**places) for word in shlex.split(words)), code=2)
    assert message in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    "words",
    [
        "analyse {example} --detector none",
        "analyse {example}",
        "route {example}",
        "generate {example} --judge",
        "attribute {example}",
    ],
)
def test_an_unsupported_architecture_is_told_before_anything_else(run, example_file, tmp_path, words):
    from transformers import GPT2Config, GPT2LMHeadModel

    from tests.tiny import tiny_tokenizer

    tokenizer = tiny_tokenizer()
    config = GPT2Config(vocab_size=len(tokenizer), n_embd=8, n_layer=1, n_head=2)
    with torch.no_grad():
        GPT2LMHeadModel(config).save_pretrained(tmp_path / "gpt2")
    tokenizer.save_pretrained(tmp_path / "gpt2")
    given = (word.format(example=example_file) for word in words.split())
    stderr = run(*given, "--reader", tmp_path / "gpt2", code=2).stderr
    assert stderr.startswith("Error: unsupported architecture 'GPT2LMHeadModel'; supported: LlamaForCausalLM")


def test_a_detector_of_another_reader_composite_or_framing_is_refused(
    run, detector, reader_folder, other_reader, example_file, tmp_path
):
    common = ["analyse", example_file, "--detector", detector, "--reader"]
    stderr = run(*common, other_reader, code=2).stderr
    assert "reader tiny (chat template," in stderr
    assert "reader other (chat template," in stderr
    assert "or analyse with --detector none" in stderr
    stderr = run(*common, reader_folder, "--composite", "cp_lrp", code=2).stderr
    assert "composite attnlrp, and this" in stderr
    stderr = run(*common, reader_folder, "--no-chat-template", code=2).stderr
    assert "raw prompt" in stderr
    assert "use that reader (--chat-template)" in stderr
    unseen = write_jsonl(examples(4, first=100), tmp_path / "test.jsonl")
    stderr = run("evaluate", unseen, "--reader", other_reader, "--detector", detector, code=2).stderr
    assert "reader tiny" in stderr
    assert "reader other" in stderr


def test_messages_of_the_library_name_options_here(run, example_file, tmp_path):
    from tests.tiny import save_tiny_reader, tiny_tokenizer

    plain = save_tiny_reader(tmp_path / "raw", tokenizer=tiny_tokenizer(None))
    small = save_tiny_reader(tmp_path / "small", window=64)
    for given, option in (
        ((plain, "--chat-template"), "--no-chat-template"),
        ((small,), "--truncate passages"),
    ):
        stderr = run("attribute", example_file, "--reader", *given, code=2).stderr
        assert f"({option})" in stderr
        assert "=" not in stderr


@pytest.mark.parametrize(
    ("template", "option"), [(None, "--chat-template"), ("{{ raise_exception('no') }}", "--device=cpu")]
)
def test_a_chat_template_that_cannot_be_used_is_refused_once(run, tmp_path, template, option):
    """And not with each example."""
    from tests.tiny import save_tiny_reader, tiny_tokenizer

    folder = save_tiny_reader(tmp_path / "base", tokenizer=tiny_tokenizer(template))
    data = write_jsonl(examples(3), tmp_path / "d.jsonl")
    result = run("analyse", data, "--reader", folder, option, code=2)
    assert result.stderr.count("--no-chat-template") == 1
    assert not result.stdout


def test_a_failure_inside_is_exit_code_1(run, tmp_path, example_file):
    """Weights that give NaN are no input error: the message names the layer and the dtype."""
    from tests.tiny import save_tiny_reader, tiny_config, tiny_llama, tiny_tokenizer

    folder = save_tiny_reader(tmp_path / "nan")
    model = tiny_llama(
        tiny_config(vocab_size=len(tiny_tokenizer()), num_hidden_layers=2), dtype=torch.float32
    )
    with torch.no_grad():
        model.model.layers[1].mlp.up_proj.weight[0, 0] = torch.nan
    model.save_pretrained(folder)
    stderr = run("analyse", example_file, "--reader", folder, "--detector", "none", code=1).stderr
    assert "NaN" in stderr


def test_a_disk_that_fills_costs_no_verdict(
    run, detector, reader_folder, example_file, tmp_path, monkeypatch
):
    """It is exit code 1, after the verdict was printed."""

    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    common = ["--reader", reader_folder, "--detector", detector, "--html", tmp_path / "page.html"]
    result = run("analyse", example_file, *common, code=1)
    assert "probability" in result.stdout
    assert "Error: [Errno 28] No" in result.stderr
    assert not (tmp_path / "page.html").exists()
