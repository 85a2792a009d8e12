import json

from tests.training.labelled import examples, write_jsonl


def test_verdict_and_evidence_on_the_terminal(run, detector, reader_folder, example_file):
    output = run("analyse", example_file, "--reader", reader_folder, "--detector", detector).stdout
    assert "probability 0." in output
    assert "It was opened in 1874." in output
    assert "rests on" in output
    assert "push" in output


def test_json_has_probability_spans_and_sentences(run, detector, reader_folder, example_file):
    result = run("analyse", example_file, "--reader", reader_folder, "--detector", detector, "--json")
    row = json.loads(result.stdout)
    text = row["response"]
    assert 0 <= row["probability"] <= 1
    assert row["hallucinated"] == (row["probability"] >= row["threshold"])
    assert [text[s["start"] : s["end"]] for s in row["sentences"]] == [
        "It was opened in 1874.",
        "Aliens built it.",
    ]
    assert all(0 <= span["start"] < span["end"] <= len(text) for span in row["spans"])
    assert len(row["sentences"][0]["by_passage"]) == 2


def test_options_say_the_same_as_the_file(run, detector, reader_folder, example_file, tmp_path):
    shown = json.loads(example_file.read_text())
    files = []
    for k, passage in enumerate(shown["passages"]):
        (tmp_path / f"p{k}.txt").write_text(passage + "\n")
        files += ["--context", tmp_path / f"p{k}.txt"]
    common = ["--reader", reader_folder, "--detector", detector, "--json"]
    by_file = json.loads(run("analyse", example_file, *common).stdout)
    by_options = json.loads(
        run(
            "analyse", "--question", shown["question"], *files, "--response", shown["response"], *common
        ).stdout
    )
    assert by_options["probability"] == by_file["probability"]


def test_standard_input(run, detector, reader_folder, example_file):
    common = ["--reader", reader_folder, "--detector", detector, "--json"]
    row = json.loads(run("analyse", "-", *common, stdin=example_file.read_text()).stdout)
    assert row["id"] == "bridge"


def test_without_a_response_the_reader_writes_one(run, reader_folder, tmp_path):
    path = tmp_path / "q.json"
    path.write_text(json.dumps({"question": "When?", "passages": ["In 1874."]}))
    result = run(
        "analyse", path, "--reader", reader_folder, "--detector", "none", "--json", "--max-new-tokens", 8
    )
    row = json.loads(result.stdout)
    assert row["generated"]
    assert 1 <= row["response_tokens"] <= 10
    assert row["probability"] is None


def test_a_file_of_many_gives_a_line_each_and_a_summary(run, detector, reader_folder, tmp_path):
    path = write_jsonl(examples(4, first=50), tmp_path / "many.jsonl")
    common = ["--reader", reader_folder, "--detector", detector]
    lines = run("analyse", path, *common).stdout.splitlines()
    assert [line.split()[0] for line in lines[:4]] == [f"bridge-{k}" for k in range(50, 54)]
    assert "4 examples" in "\n".join(lines[4:])
    result = run("analyse", path, *common, "--json")
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == [
        f"bridge-{k}" for k in range(50, 54)
    ]
    assert "4 examples" in result.stderr


def test_one_of_many_by_id(run, detector, reader_folder, tmp_path):
    path = write_jsonl(examples(4), tmp_path / "many.jsonl")
    common = ["--reader", reader_folder, "--detector", detector, "--json"]
    assert json.loads(run("analyse", path, "--id", "bridge-2", *common).stdout)["id"] == "bridge-2"
    assert "no example with id 'x'" in run("analyse", path, "--id", "x", *common, code=2).stderr


def test_one_bad_example_of_many_does_not_stop_the_others(run, detector, reader_folder, tmp_path):
    rows = examples(3, first=60)
    path = write_jsonl(rows, tmp_path / "many.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[1]["response"] = "word " * 600  # the tiny reader's window is 512
    path.write_text("\n".join(map(json.dumps, lines)))
    result = run("analyse", path, "--reader", reader_folder, "--detector", detector, "--json", code=2)
    assert len(result.stdout.splitlines()) == 2
    assert "example 'bridge-61'" in result.stderr
    assert "window of 512" in result.stderr


def test_html_and_png_are_written(run, detector, reader_folder, example_file, tmp_path):
    html, png = tmp_path / "page.html", tmp_path / "plot.png"
    common = ["--reader", reader_folder, "--detector", detector]
    run("analyse", example_file, *common, "--html", html, "--png", png, "--tokens")
    page = html.read_text()
    assert "Aliens built it." in page
    assert "probability" in page
    assert png.read_bytes().startswith(b"\x89PNG")


def test_exit_code_tells_of_a_hallucination_on_request(run, detector, reader_folder, labelled_file):
    common = ["--reader", reader_folder, "--detector", detector]
    rows = [json.loads(line) for line in run("analyse", labelled_file, *common, "--json").stdout.splitlines()]
    flagged = next(row["id"] for row in rows if row["hallucinated"])
    passed = next(row["id"] for row in rows if not row["hallucinated"])
    run("analyse", labelled_file, *common, "--id", flagged, "--fail-on-hallucination", code=3)
    run("analyse", labelled_file, *common, "--id", flagged)
    run("analyse", labelled_file, *common, "--id", passed, "--fail-on-hallucination")


def test_composite_and_dtype_are_passed_on(run, reader_folder, example_file):
    common = ["analyse", example_file, "--reader", reader_folder, "--detector", "none", "--json"]
    rows = {name: json.loads(run(*common, "--composite", name).stdout) for name in ("paper", "cp_lrp")}
    assert {row["composite"] for row in rows.values()} == {"paper", "cp_lrp"}
    assert rows["paper"]["sentences"] != rows["cp_lrp"]["sentences"]
    assert json.loads(run(*common, "--dtype", "bfloat16").stdout)["reader"]["dtype"] == "bfloat16"


def test_another_dtype_than_the_detector_warns(run, detector, reader_folder, example_file):
    result = run(
        "analyse", example_file, "--reader", reader_folder, "--detector", detector, "--dtype", "bfloat16"
    )
    assert "Warning: the detector was trained in float32, this is bfloat16" in result.stderr


def test_control_tokens_of_the_terminal_do_not_pass(run, reader_folder, tmp_path):
    path = tmp_path / "evil.json"
    path.write_text(
        json.dumps({"question": "Q", "passages": ["\x1b[31mP"], "response": "\x1b[2J gone \x1b]0;x\x07"})
    )
    output = run("analyse", path, "--reader", reader_folder, "--detector", "none").stdout
    assert "\x1b" not in output
    assert "\x07" not in output
