"""`lrp4rag analyse` with a vector detector: what it prints, reads, writes and returns."""

import json

import pytest

from tests.training.labelled import examples, write_jsonl


@pytest.fixture
def common(reader_folder, detector):
    return ["--reader", reader_folder, "--detector", detector]


@pytest.fixture
def evidence(reader_folder):
    return ["--reader", reader_folder, "--detector", "none", "--json"]


def test_verdict_and_evidence_on_the_terminal(run, common, example_file):
    output = run("analyse", example_file, *common).stdout
    for words in ("probability 0.", "It was opened in 1874.", "main source", "push"):
        assert words in output


def test_a_reader_that_no_detector_knows_is_judged_beside(run, reader_folder, example_file):
    shown = run("analyse", example_file, "--reader", reader_folder).stdout
    assert "not calibrated for the reader" in shown
    row = json.loads(run("analyse", example_file, "--reader", reader_folder, "--json").stdout)
    assert 0 <= row["probability"] <= 1
    assert row["calibrated"] is False
    alone = json.loads(run("analyse", example_file, "--reader", "none", "--json").stdout)
    assert alone["probability"] == pytest.approx(row["probability"])
    assert alone["calibrated"] is True


def test_a_summary_says_that_texts_alone_were_compared(run, reader_folder, tmp_path):
    data = write_jsonl(examples(2), tmp_path / "d.jsonl")
    assert "not calibrated" in run("analyse", data, "--reader", reader_folder).stdout
    assert "not calibrated" in run("analyse", data, "--reader", reader_folder, "--json").stderr
    assert "not calibrated" not in run("analyse", data, "--reader", "none").stdout


def test_json_has_probability_spans_and_sentences(run, common, example_file):
    row = json.loads(run("analyse", example_file, *common, "--json").stdout)
    assert 0 <= row["probability"] <= 1
    assert row["hallucinated"] == (row["probability"] >= row["threshold"])
    assert [one["text"] for one in row["sentences"]] == ["It was opened in 1874.", "Aliens built it."]
    assert all(0 <= span["start"] < span["end"] <= len(row["response"]) for span in row["spans"])
    assert len(row["sentences"][0]["by_passage"]) == 2


def test_parts_and_standard_input_say_the_same_as_the_file(run, common, example_file, tmp_path):
    shown = json.loads(example_file.read_text())
    (tmp_path / "p.txt").write_text(shown["passages"][0] + "\n")
    passages = ["--passage", f"@{tmp_path}/p.txt", "--passage", shown["passages"][1]]
    parts = ["--question", shown["question"], *passages, "--response", shown["response"]]
    rows = [
        json.loads(run("analyse", *source, *common, "--json", stdin=example_file.read_text()).stdout)
        for source in ([example_file], parts, ["-"])
    ]
    assert len({row["probability"] for row in rows}) == 1
    assert rows[2]["id"] == "bridge"


def test_two_at_signs_are_one_that_names_no_file(run, evidence):
    parts = ["--question", "Who?", "--response", "It is.", "--passage"]
    doubled, literal = (
        json.loads(run("analyse", *parts, passage, *evidence).stdout)["prompt_tokens"]
        for passage in ("@@home", "a@home")
    )
    assert doubled < literal


def test_without_a_response_the_reader_writes_one(run, evidence, tmp_path):
    path = tmp_path / "q.json"
    path.write_text(json.dumps({"question": "When?", "passages": ["In 1874."]}))
    row = json.loads(run("analyse", path, *evidence, "--max-new-tokens", 8).stdout)
    assert row["generated"]
    assert 1 <= row["response_tokens"] <= 10
    assert row["probability"] is None


def test_a_file_of_many_gives_a_line_each_and_a_summary(run, common, tmp_path):
    path = write_jsonl(examples(4, first=50), tmp_path / "many.jsonl")
    ids = [f"bridge-{k}" for k in range(50, 54)]
    lines = run("analyse", path, *common).stdout.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ids
    assert "4 examples" in "\n".join(lines[4:])
    result = run("analyse", path, *common, "--json")
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == ids
    assert "4 examples" in result.stderr
    assert json.loads(run("analyse", path, "--id", ids[2], *common, "--json").stdout)["id"] == ids[2]
    assert "example with id 'x'" in run("analyse", path, "--id", "x", *common, code=2).stderr


def test_html_and_png_are_written(run, common, example_file, tmp_path):
    html, png = tmp_path / "page.html", tmp_path / "plot.png"
    run("analyse", example_file, *common, "--html", html, "--png", png)
    assert "Aliens built it." in html.read_text()
    assert "probability" in html.read_text()
    assert png.read_bytes().startswith(b"\x89PNG")


def test_exit_code_tells_of_a_hallucination_on_request(run, common, labelled_file):
    rows = [json.loads(line) for line in run("analyse", labelled_file, *common, "--json").stdout.splitlines()]
    flagged = next(row["id"] for row in rows if row["hallucinated"])
    passed = next(row["id"] for row in rows if not row["hallucinated"])
    run("analyse", labelled_file, *common, "--id", flagged, "--fail-on-hallucination", code=3)
    run("analyse", labelled_file, *common, "--id", flagged)
    run("analyse", labelled_file, *common, "--id", passed, "--fail-on-hallucination")


def test_composite_and_dtype_are_passed_on(run, common, evidence, example_file):
    rows = {
        name: json.loads(run("analyse", example_file, *evidence, "--composite", name).stdout)
        for name in ("paper", "cp_lrp")
    }
    assert {row["composite"] for row in rows.values()} == {"paper", "cp_lrp"}
    assert rows["paper"]["sentences"] != rows["cp_lrp"]["sentences"]
    result = run("analyse", example_file, *common, "--json", "--dtype", "bfloat16")
    assert json.loads(result.stdout)["reader"]["dtype"] == "bfloat16"
    assert "float32, this is bfloat16" in result.stderr
