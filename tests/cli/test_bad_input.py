"""Everything a user can get wrong: a message that names the place, exit code 2, and no traceback."""

import errno
import json

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
        (f"{changed()}\n{changed(question=...)}", ["line 2", "field 'question'", "required"]),
        (f"{changed()}\n{changed(passages=...)}", ["line 2", "field 'passages'", "required"]),
        (changed(response="  "), ["line 1", "field 'response'", "the response is empty"]),
        (changed(passages=[]), ["line 1", "field 'passages'"]),
        (changed(passages=["x", " "]), ["line 1", "field 'passages[1]'", "the passage is empty"]),
        (changed(passages="In 1874."), ["line 1", "field 'passages'", "list"]),
        (changed(passages=["x", 3]), ["line 1", "field 'passages[1]'", "string"]),
        (changed(respones="typo"), ["line 1", "field 'respones'", "not permitted"]),
        (
            changed(labels=[{"start": 3, "end": 99}]),
            ["line 1", "field 'labels[0]'", "3..99 lies outside the response, which has 12 characters"],
        ),
        (changed(labels=[{"start": 5, "end": 5}]), ["line 1", "field 'labels[0]'", "outside"]),
        (changed(prompt="no such text"), ["line 1", "field 'passages[0]'", "does not occur in the prompt"]),
        (changed(template="{question}"), ["line 1", "field 'template'", "{context} exactly once"]),
        (changed(response="half \ud800"), ["line 1", "field 'response'", "lone surrogate at character 5"]),
        (
            f"{changed(id='a')}\n{changed(id='a')}",
            ["line 2", "field 'id'", "duplicate id 'a' (first on line 1)"],
        ),
        ("3", ["line 1", "expected a JSON object, found int"]),
        ("", ["no examples"]),
    ],
)
def test_bad_rows(run, reader_folder, tmp_path, content, messages):
    path = tmp_path / "data.jsonl"
    path.write_text(content)
    result = run("analyse", path, "--reader", reader_folder, "--detector", "none", code=2)
    assert result.stdout == ""
    assert result.stderr.startswith(f"Error: {path}")
    for message in messages:
        assert message in result.stderr


def test_missing_file(run):
    assert "nowhere.jsonl: no such file" in run("analyse", "nowhere.jsonl", code=2).stderr


def test_invalid_utf8_names_line_and_byte(run, tmp_path):
    path = tmp_path / "latin1.jsonl"
    path.write_bytes(changed().encode() + b'\n{"question": "caf\xe9"}')
    stderr = run("analyse", path, code=2).stderr
    assert "line 2" in stderr
    assert "invalid UTF-8 at byte" in stderr


def test_invalid_utf8_in_a_context_file(run, tmp_path):
    (tmp_path / "p.txt").write_bytes(b"caf\xe9")
    stderr = run("analyse", "--question", "Q", "--context", tmp_path / "p.txt", code=2).stderr
    assert "p.txt, line 1: invalid UTF-8" in stderr


def test_empty_and_missing_context_files(run, tmp_path):
    (tmp_path / "p.txt").write_text(" \n")
    stderr = run("analyse", "--question", "Q", "--context", tmp_path / "p.txt", code=2).stderr
    assert "p.txt" in stderr
    assert "the context is empty" in stderr
    assert "no such file" in run("analyse", "--question", "Q", "--context", "none.txt", code=2).stderr


def test_parts_are_needed_and_not_mixed(run, example_file):
    assert "give DATA, or --question" in run("analyse", code=2).stderr
    assert "give DATA, or --question" in run("analyse", "--question", "Q", code=2).stderr
    assert "not both" in run("analyse", example_file, "--response", "x", code=2).stderr


def test_response_longer_than_the_window_states_both_lengths(run, reader_folder, tmp_path):
    path = tmp_path / "long.json"
    path.write_text(changed(response="It was 1874. " * 200))
    stderr = run("analyse", path, "--reader", reader_folder, "--detector", "none", code=2).stderr
    assert "prompt of " in stderr
    assert "tokens exceed the reader's window of 512" in stderr


def test_unknown_model(run, example_file):
    stderr = run("analyse", example_file, "--reader", "nobody/nothing", "--detector", "none", code=2).stderr
    assert "cannot load reader 'nobody/nothing'" in stderr


def test_unsupported_architecture_is_named_with_the_supported_ones(run, example_file, tmp_path):
    from transformers import GPT2Config, GPT2LMHeadModel

    from tests.tiny import tiny_tokenizer

    tokenizer = tiny_tokenizer()
    config = GPT2Config(vocab_size=len(tokenizer), n_embd=8, n_layer=1, n_head=2)
    with torch.no_grad():
        GPT2LMHeadModel(config).save_pretrained(tmp_path / "gpt2")
    tokenizer.save_pretrained(tmp_path / "gpt2")
    stderr = run("analyse", example_file, "--reader", tmp_path / "gpt2", "--detector", "none", code=2).stderr
    assert "unsupported architecture 'GPT2LMHeadModel'; supported: LlamaForCausalLM" in stderr


def test_a_detector_for_another_reader_is_refused_with_both_named(run, detector, other_reader, example_file):
    stderr = run("analyse", example_file, "--reader", other_reader, "--detector", detector, code=2).stderr
    assert "trained with reader tiny (chat template, " in stderr
    assert "this is reader other (chat template, " in stderr


def test_a_detector_for_another_composite_or_framing_is_refused(run, detector, reader_folder, example_file):
    common = ["analyse", example_file, "--reader", reader_folder, "--detector", detector]
    stderr = run(*common, "--composite", "cp_lrp", code=2).stderr
    assert "composite attnlrp, and this is composite cp_lrp" in stderr
    assert "raw prompt" in run(*common, "--no-chat-template", code=2).stderr


def test_corrupt_and_missing_detectors(run, detector, reader_folder, example_file, tmp_path):
    common = ["analyse", example_file, "--reader", reader_folder, "--detector"]
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "card.json").write_bytes((detector / "card.json").read_bytes())
    (copy / "estimator.skops").write_bytes(b"PK" + (detector / "estimator.skops").read_bytes()[2:-40])
    assert "estimator.skops: the detector file is corrupt" in run(*common, copy, code=2).stderr
    (copy / "card.json").write_text("not json")
    assert "not a detector card" in run(*common, copy, code=2).stderr
    assert "no detector here" in run(*common, tmp_path / "none", code=2).stderr


def test_outputs_are_checked_before_anything_is_computed(run, example_file, tmp_path):
    missing = tmp_path / "no" / "page.html"
    assert "its folder does not exist" in run("analyse", example_file, "--html", missing, code=2).stderr
    assert "this is a folder" in run("analyse", example_file, "--png", tmp_path, code=2).stderr
    many = write_jsonl(examples(2), tmp_path / "many.jsonl")
    stderr = run("analyse", many, "--html", tmp_path / "page.html", code=2).stderr
    assert "--html and --png show one example and there are 2; add --id" in stderr
    assert "--tokens is for the page" in run("analyse", example_file, "--tokens", code=2).stderr


def test_failing_on_hallucination_needs_a_detector(run, example_file):
    stderr = run("analyse", example_file, "--detector", "none", "--fail-on-hallucination", code=2).stderr
    assert "needs a detector" in stderr


def test_unknown_device(run, example_file, reader_folder):
    common = ["analyse", example_file, "--reader", reader_folder, "--detector", "none", "--device"]
    assert "unknown device 'gpu'" in run(*common, "gpu", code=2).stderr
    assert "unknown device 'meta'" in run(*common, "meta", code=2).stderr


def test_ragtruth_folder_without_its_files(run, tmp_path):
    assert "it has no source_info.jsonl" in run("analyse", tmp_path, code=2).stderr


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


def test_a_page_that_cannot_be_written_costs_no_analysis(run, detector, reader_folder, example_file):
    common = ["--reader", reader_folder, "--detector", detector, "--html", "/proc/page.html"]
    result = run("analyse", example_file, *common, code=2)
    assert result.stdout == ""
    assert "/proc/page.html: cannot write here" in result.stderr


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
    assert "Error: [Errno 28] No space left" in result.stderr
    assert not (tmp_path / "page.html").exists()


def test_a_syntax_error_in_an_object_over_several_lines(run, tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{\n "question": "Q",\n "passages": [oops]\n}')
    assert "line 3: invalid JSON at column 15" in run("analyse", path, code=2).stderr


def test_one_file_for_two_outputs(run, example_file, tmp_path):
    both = ["--html", tmp_path / "x", "--png", tmp_path / "x"]
    assert "name the same file" in run("analyse", example_file, *both, code=2).stderr
