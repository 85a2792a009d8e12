"""A network learns, goes on where it was stopped, and is written for use."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from experiments.comparer import __main__ as command
from experiments.comparer import learning, saving
from experiments.comparer.check import HeldOut, check
from experiments.comparer.learning import (
    Course,
    Learner,
    Lessons,
    half_of,
    learn,
    loss_of,
    network_at,
    parts_of,
)
from lrp4rag.example import Example, Label
from lrp4rag.reader import comparer as reader
from lrp4rag.reader.comparer import Comparer, Pair, batch_of, encode_pair
from lrp4rag.training.labelled_pairs import LabelledPair
from lrp4rag.util.errors import InputError
from lrp4rag.util.tensors import read_tensors
from tests.experiments.comparer.tiny import answers, claims, coloured, tiny_network


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (learning, saving, reader, command):
        monkeypatch.setattr(module, "new_network", tiny_network)
    for name, value in (("CLAIMS", 4), ("ANSWERS", 4), ("RIGHT", 1), ("WARM", 2), ("RATE", 1e-2)):
        monkeypatch.setattr(learning, name, value)


def weights(path: Path) -> dict[str, np.ndarray]:
    return read_tensors(path, learning.KIND)[1]


def test_it_learns(tmp_path) -> None:
    torch.manual_seed(0)
    learner = Learner(*tiny_network(torch.bfloat16))
    embeddings = learner.network.encoder.embeddings.word_embeddings.weight.clone()
    lessons = Lessons(claims(), answers(), 0)
    losses = [learner.learn(lessons.at(step), step / 40) for step in range(40)]
    assert np.mean(losses[-5:]) < 0.8 * np.mean(losses[:5])
    assert torch.equal(learner.network.encoder.embeddings.word_embeddings.weight, embeddings)


def test_it_goes_on_exactly_where_it_was_stopped(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(learning, "EVERY", 3)
    monkeypatch.setattr(learning, "TOLD_EVERY", 2)
    rest = (1, claims(), answers(), claims())
    learn(*rest, tmp_path / "whole", Course(7))
    assert "network 1, step 6: loss" in capsys.readouterr().err

    def stop(*_: object) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(learning, "check", stop)
        with pytest.raises(KeyboardInterrupt):
            learn(*rest, tmp_path / "parts", Course(7))
    assert read_tensors(tmp_path / "parts", learning.KIND)[0]["step"] == 3
    learn(*rest, tmp_path / "parts", Course(7))
    whole, parts = weights(tmp_path / "whole"), weights(tmp_path / "parts")
    assert whole.keys() == parts.keys()
    assert all(np.array_equal(whole[name], parts[name]) for name in whole)
    # What is done is not done again, and what learned from something else does not go on.
    before = (tmp_path / "whole").read_bytes()
    learn(*rest, tmp_path / "whole", Course(7))
    assert (tmp_path / "whole").read_bytes() == before
    with pytest.raises(InputError, match="other pairs"):
        learn(1, claims()[1:], answers(), claims(), tmp_path / "whole", Course(7))


def test_it_ends_in_time(tmp_path) -> None:
    learn(0, claims(), answers(), (), tmp_path / "one", Course(10**6, seconds=0.2))
    record, _ = read_tensors(tmp_path / "one", learning.KIND)
    assert 0.2 <= record["seconds"] < 20
    assert 0 < record["step"] < 1000
    assert Course(10, 100).share(2, 50) == Course(10, 100).share(5, 20) == 0.5


def test_it_begins_with_the_networks_of_another_comparer(tmp_path) -> None:
    paths = [tmp_path / str(number) for number in range(2)]
    for number, path in enumerate(paths):
        learn(number, claims(), answers(), (), path, Course(3))
    saving.save_comparer(tmp_path / "comparer", [network_at(path) for path in paths], {})
    before = Comparer.load(tmp_path / "comparer").networks[1].learned()
    learn(1, claims(), answers(), (), tmp_path / "after", Course(1), tmp_path / "comparer")
    after = network_at(tmp_path / "after").learned()  # its first step has a rate of 0
    for name, value in after.items():
        assert torch.allclose(value, before[name], atol=0.01), name
    assert not torch.allclose(after["word.weight"], network_at(paths[0]).learned()["word.weight"], atol=0.01)


def test_a_step_has_claims_faults_in_twos_and_some_of_models() -> None:
    own = [one for one in answers() if one.set != "ragtruth" or one.wrong]
    own += [coloured("red", "red", "elsewhere", "ragtruth")]
    unlike = replace(coloured("red", "red", "", "everyday"), pair=Pair("a dragon", "", "it burned"))
    own += [replace(unlike, source=f"question {number}") for number in range(8)]
    lessons, alike = Lessons(claims(), own, 3), Counter[bool]()
    for step in range(60):
        shown, said = lessons.at(step)
        assert [one.set for one in shown] == ["claims"] * 4
        assert [one.set for one in said] == ["everyday"] * 4 + ["ragtruth"] * 2
        assert [one.wrong for one in said] == [True, False] * 3
        assert said[0].source == said[1].source
        alike[said[1].pair != unlike.pair] += 1
    assert alike[True] > 4 * alike[False] > 0
    assert lessons.at(7) == Lessons(claims(), own, 3).at(7) != lessons.at(8)
    with pytest.raises(InputError, match="no faults"):
        Lessons(claims(), [one for one in own if not one.wrong], 0)


def test_a_step_is_learned_in_parts_of_like_length() -> None:
    pairs = [
        LabelledPair(Pair("grey " * k, "", "It is grey."), "e", None, "", "claims") for k in (9, 2, 7, 1)
    ]
    parts = parts_of(pairs)
    assert [[len(one.pair.premise) // 5 for one in part] for part in parts] == [[1], [2], [7, 9]]
    assert parts_of(pairs[:1]) == [pairs[:1]]


def test_padding_changes_no_loss() -> None:
    network, tokenizer = tiny_network()
    network.eval()
    alone = loss_of(network, tokenizer, claims()[:1]).item()
    longer = replace(claims()[0].pair, premise=claims()[0].pair.premise * 9)
    assert len(encode_pair(tokenizer, longer).ids) > 32
    both = loss_of(network, tokenizer, [claims()[0], replace(claims()[0], pair=longer)]).item()
    other = loss_of(network, tokenizer, [replace(claims()[0], pair=longer)]).item()
    assert both == pytest.approx((alone + other) / 2, abs=1e-5)


def test_words_of_a_fault_weigh_where_they_are_known() -> None:
    network, tokenizer = tiny_network()
    known, unknown = coloured("red", "blue", "a", "everyday"), coloured("red", "blue", "a", "claims")
    encoded = encode_pair(tokenizer, known.pair)
    with torch.no_grad():
        classes, words = network.eval()(batch_of([encoded]))
        whole = -torch.log_softmax(classes, 1)[0, 1]
        assert loss_of(network, tokenizer, [unknown]) == pytest.approx(float(whole))
        odds = words[0, encoded.tokens]
        assert len(odds) == 4  # the, bridge, is, blue
        errors = [-3 * torch.sigmoid(odds[3]).log(), *(-torch.sigmoid(-odds[:3]).log())]
        expected = whole + 0.7 * sum(errors) / 4
    assert loss_of(network, tokenizer, [known]).item() == pytest.approx(float(expected), rel=1e-5)


def test_what_it_does_on_held_out_answers_is_said() -> None:
    network, tokenizer = tiny_network()
    made = answers(30)
    held = HeldOut.of(claims(), made)
    assert {one.set for one in held.answers} == {"everyday"}
    text = check(network, tokenizer, held)
    assert re.match(r"claims [01]\.\d{3}, right", text)
    assert "; name of everyday " in text
    assert network.training
    assert check(network, tokenizer, HeldOut((), ())) == "nothing to measure by"


def test_the_command_writes_which_network_learned_from_what(tmp_path, monkeypatch) -> None:
    response = "the bridge is red"
    examples = [
        Example(
            "what is it", ["the old bridge is blue"], response, source=str(number), id=name, labels=labels
        )
        for number in range(6)
        for name, labels in ((f"{number}a", ()), (f"{number}b", (Label(14, 17, "name"),)))
    ]
    monkeypatch.setattr(command, "load_set", lambda _: examples)
    monkeypatch.setattr(command, "load_examples", lambda _: examples)
    monkeypatch.setattr(command, "read_claims", lambda _: claims())
    monkeypatch.setattr(command, "read_measured", lambda *_: claims())
    monkeypatch.setattr(command, "Parallel", lambda n_jobs: list if n_jobs == 2 else None)
    monkeypatch.setattr(command, "delayed", lambda function: function)
    out = tmp_path / "comparer.safetensors"
    arguments = [str(tmp_path), str(tmp_path), "--out", str(out), "--steps", "2"]
    result = CliRunner().invoke(command.main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    record, _ = read_tensors(out, reader.KIND)
    assert record["learned"] == {str(number): 1 - half_of(str(number)) for number in range(6)}
    assert {half_of(str(number)) for number in range(6)} == {0, 1}
    kept = network_at(tmp_path / "comparer-1.learning.safetensors")
    (loaded,) = Comparer.load(out).networks[1:]
    assert torch.allclose(loaded.whole.weight, kept.whole.weight, atol=1e-2)
    (tmp_path / "comparer-0.learning.safetensors").write_bytes(b"x")
    assert CliRunner().invoke(command.main, arguments).exit_code == 2
    again = [*arguments, "--after", str(out)]
    out.with_name("comparer-0.learning.safetensors").unlink()
    result = CliRunner().invoke(command.main, again, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    monkeypatch.setattr(command, "half_of", lambda source: 1 - half_of(source))
    result = CliRunner().invoke(command.main, again)
    assert result.exit_code == 2
    assert "another network of it learned from 0" in result.output
