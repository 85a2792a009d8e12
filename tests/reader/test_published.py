"""Published models in the comparer's place: families, what their outputs mean, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lrp4rag.reader.comparer import PIECE, Pair, bundled_comparer
from lrp4rag.reader.published import Calibration, PublishedComparer, Scale, Scales, meanings_of, settings_hash
from lrp4rag.reader.weights import weights_hash
from lrp4rag.util.errors import InputError, RelevanceError
from lrp4rag.util.strict_json import sealed
from tests.experiments.systems.tiny import tiny_wordpiece
from tests.reader.published import HEADS, save_published
from tests.tiny import save_tiny_reader

NLI = ("entailment", "neutral", "contradiction")
PAIR = Pair("the old bridge is red", "was it?", "the bridge is blue")
LONG = replace(PAIR, premise="the river burned the stone " * 30)
MODELS = [
    ("bert", NLI),
    ("roberta", ("unsupported", "supported")),
    ("deberta-v2", ("LABEL_0",)),
    ("modernbert", ("supported", "hallucinated")),
]


def load(folder: Path, *labels: str) -> PublishedComparer:
    return PublishedComparer.load(str(folder), labels, "cpu")


@pytest.fixture(scope="module")
def nli(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_published(tmp_path_factory.mktemp("models") / "nli", NLI)


def written(path: Path, folder: Path, **changes: Any) -> Path:
    """A calibration of a model, without figures."""
    calibration = Calibration(
        model=str(folder),
        weights=weights_hash(folder),
        settings=settings_hash(folder),
        labels=("supported", "not told", "contradicted"),
        comparer="a" * 64,
        scales=Scales(unsupported=Scale(slope=2.0, offset=-1.0)),
        seen=("b" * 64,),
        figures={},
        package="0",
    )
    record = calibration.model_dump(mode="json", exclude={"sha256"}) | changes
    path.write_text(json.dumps(sealed({name: value for name, value in record.items() if value is not None})))
    return path


@pytest.mark.parametrize(("family", "names"), MODELS)
def test_each_family_reads_pairs_the_same_in_any_batch(family: str, names: tuple[str, ...], tmp_path: Path):
    comparer = load(save_published(tmp_path / "m", names, family))
    (alone,) = comparer([PAIR])
    comparer.forget()
    among, long, without, lead = comparer([PAIR, LONG, replace(PAIR, premise=""), replace(PAIR, lead="")])
    assert np.exp(among.classes).sum() == pytest.approx(1, abs=1e-5)
    assert among.unsupported == pytest.approx(alone.unsupported, abs=1e-4)
    assert lead.unsupported == pytest.approx(alone.unsupported, abs=1e-4)
    assert len({round(one.unsupported, 4) for one in (among, long, without)}) == 3
    assert long.spans.max() == len(PAIR.claim)  # the premise is cut, the claim is not
    assert among.contradicted < among.unsupported
    if "Token" in HEADS[family]:
        assert [PAIR.claim[start:end] for start, end in among.spans] == PAIR.claim.split()
    assert among.highest() == pytest.approx(among.unsupported, abs=1e-4)


@pytest.mark.parametrize(("family", "names"), MODELS)
def test_a_claim_longer_than_the_window_is_read_in_part(family: str, names: tuple[str, ...], tmp_path: Path):
    comparer = load(save_published(tmp_path / "m", names, family))
    claim = "dragon " * 200
    (found,) = comparer([replace(PAIR, claim=claim)])
    assert np.isfinite(found.words).all()
    assert found.spans.min() >= 0
    assert found.spans.max() <= len(claim)


def test_texts_of_any_length_are_cut_before_they_are_tokens(nli: Path, monkeypatch: pytest.MonkeyPatch):
    comparer, lengths = load(nli), list[int]()
    (short,) = comparer([LONG])
    tokenizer = comparer.tokenizer

    class Measured(type(tokenizer)):
        def __call__(self, *texts: str, **options: Any) -> Any:
            lengths.extend(map(len, texts))
            return super().__call__(*texts, **options)

    monkeypatch.setattr(tokenizer, "__class__", Measured)
    (long,) = comparer([replace(LONG, premise=LONG.premise + "the river burned the stone " * 10_000)])
    comparer([replace(PAIR, claim="the bridge is blue " * 100)])
    assert long.unsupported == short.unsupported
    assert max(lengths) <= max(PIECE, 64 * max(map(len, tokenizer.get_vocab())))


@pytest.mark.parametrize("field", ["premise", "lead", "claim"])
def test_half_a_character_is_read_as_one_that_is_unknown(field: str, nli: Path):
    half, known = (replace(PAIR, **{field: f"the {sign} bridge"}) for sign in ("\ud800", "\ufffd"))
    for comparer in (load(nli), bundled_comparer()):
        first, second = comparer([half, known])
        assert first.unsupported == second.unsupported
        assert (first.spans == second.spans).all()


def test_log_odds_are_those_of_the_models_outputs(nli: Path):
    comparer = load(nli)
    (found,) = comparer([PAIR])
    inputs = tiny_wordpiece()(PAIR.premise, PAIR.claim, return_tensors="pt")
    supported, neutral, denied = comparer.model(**inputs).logits.softmax(-1)[0].tolist()
    assert found.unsupported == pytest.approx(np.log((neutral + denied) / supported), abs=1e-4)
    assert found.contradicted == pytest.approx(np.log(denied / supported), abs=1e-4)


def test_one_output_is_the_log_odds_of_support_or_of_what_it_is_named(tmp_path: Path):
    folder = save_published(tmp_path / "m", ("LABEL_0",))
    (support,), (fault,) = load(folder)([PAIR]), load(folder, "hallucinated")([PAIR])
    assert support.unsupported == pytest.approx(-fault.unsupported, abs=1e-5)


@pytest.mark.parametrize(
    ("names", "meanings"),
    [
        (NLI, ("supported", "not told", "contradicted")),
        (("CONTRADICTION", "Entailment"), ("contradicted", "supported")),
        (("not_entailment", "entailment"), ("unsupported", "supported")),
        (("Not Entailed", "ENTAILED"), ("unsupported", "supported")),
        (("SUPPORTS", "REFUTES", "NOT ENOUGH INFO"), ("supported", "contradicted", "not told")),
        (("consistent", "hallucinated"), ("supported", "unsupported")),
        (("not told", "unsupported", "supported"), ("not told", "unsupported", "supported")),
        (("LABEL_0",), ("supported",)),
        (("hallucination",), ("unsupported",)),
    ],
)
def test_outputs_are_known_by_their_names(names: tuple[str, ...], meanings: tuple[str, ...]):
    assert meanings_of(names, len(names)) == meanings


@pytest.mark.parametrize(
    ("names", "outputs"),
    [
        (("LABEL_0", "LABEL_1"), 2),
        (("positive", "negative"), 2),
        (("entailment", "supported"), 2),
        (("neutral", "contradiction"), 2),
        (("supported", "unsupported"), 3),
        (("score",), 1),
        (("supported", "\x1b[31munsupported"), 2),
        (("supported", ""), 2),
    ],
)
def test_names_that_do_not_tell_are_refused_with_what_to_do(names: tuple[str, ...], outputs: int):
    with pytest.raises(InputError, match="--labels") as refused:
        meanings_of(names, outputs)
    assert "\x1b" not in str(refused.value)


def test_unnamed_outputs_are_named_by_the_caller(tmp_path: Path):
    folder = save_published(tmp_path / "m", ("LABEL_0", "LABEL_1"))
    with pytest.raises(InputError, match="LABEL_0"):
        load(folder)
    (one,), (other,) = (
        load(folder, *names)([PAIR]) for names in (("supported", "unsupported"), ("unsupported", "supported"))
    )
    assert one.unsupported == pytest.approx(-other.unsupported, abs=1e-5)


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
def test_code_among_the_files_is_refused(name: str, nli: Path, tmp_path: Path):
    folder = save_published(tmp_path / "m", NLI)
    path = folder / name
    path.write_text(json.dumps(json.loads(path.read_text()) | {"auto_map": {"AutoModel": "evil.Evil"}}))
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(InputError, match="runs none"):
        load(folder)
    assert not (tmp_path / "ran").exists()


def damage(folder: Path, what: str) -> Path:
    weights = folder / "model.safetensors"
    config = json.loads((folder / "config.json").read_text())
    if what == "pickled":
        torch.save({}, folder / "pytorch_model.bin")
        weights.unlink()
    elif what == "cut":
        weights.write_bytes(weights.read_bytes()[:-9])
    elif what == "head":
        config["architectures"] = ["BertModel"]
    elif what == "heads":
        config["architectures"] = 3
    elif what == "labels":
        config["id2label"] = {"0": "entailment", "1": "neutral", "7": "contradiction"}
    elif what == "huge":
        config["hidden_size"] = 10**9
    elif what == "no tokenizer":
        for path in folder.glob("token*"):
            path.unlink()
    elif what == "no config":
        (folder / "config.json").unlink()
        return folder
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize(
    "what",
    ["pickled", "cut", "head", "heads", "huge", "labels", "no tokenizer", "no config", "reader", "nowhere"],
)
def test_what_is_no_published_comparer_is_refused(what: str, tmp_path: Path):
    folder = tmp_path / "m"
    if what == "reader":
        save_tiny_reader(folder)
    elif what != "nowhere":
        damage(save_published(folder, NLI), what)
    with pytest.raises(InputError):
        load(folder)


def test_numbers_that_are_none_give_no_verdict(nli: Path):
    comparer = load(nli)
    with torch.no_grad():
        comparer.model.classifier.weight.fill_(torch.nan)
    with pytest.raises(RelevanceError, match="NaN"):
        comparer([PAIR])


def test_a_tokenizer_of_another_model_is_refused(tmp_path: Path):
    comparer = load(save_published(tmp_path / "m", NLI, vocab_size=8))
    with pytest.raises(InputError, match="tokenizer"):
        comparer([PAIR])


def test_a_calibration_puts_the_model_on_another_scale(nli: Path, tmp_path: Path):
    path = written(tmp_path / "c.json", nli)
    own, comparer = load(nli), Calibration.read(path).load("cpu")
    (before,), (after,) = own([PAIR]), comparer([PAIR])
    assert after.unsupported == pytest.approx(2 * before.unsupported - 1, abs=1e-4)
    assert after.highest() == pytest.approx(before.highest(), abs=1e-4)
    assert after.contradicted < after.unsupported
    assert comparer.seen == {"b" * 64}
    assert comparer.digest != own.digest


@pytest.mark.parametrize(
    "changes",
    [
        {"format": 2},
        {"model": None},
        {"weights": "a"},
        {"labels": []},
        {"labels": ["LABEL_0"]},
        {"scales": {"unsupported": {"slope": 0.0, "offset": 0.0}}},
        {"scales": {"unsupported": {"slope": -1.0, "offset": 0.0}}},
        {"scales": {"unsupported": {"slope": 1e300, "offset": 0.0}}},
        {"scales": {"unsupported": {"slope": True, "offset": 0.0}}},
        {"surplus": 1},
    ],
)
def test_a_calibration_with_other_fields_is_refused(changes: dict[str, Any], nli: Path, tmp_path: Path):
    with pytest.raises(InputError, match="calibrat"):
        Calibration.read(written(tmp_path / "c.json", nli, **changes))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"format": 1, "format": 1}', '{"format": NaN}', "[" * 9999, "\0"]
)
def test_a_damaged_calibration_is_refused(text: str, tmp_path: Path):
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(InputError, match="lrp4rag calibrate"):
        Calibration.read(path)


def test_a_calibration_that_was_changed_is_refused(nli: Path, tmp_path: Path):
    path = written(tmp_path / "c.json", nli)
    path.write_text(path.read_text().replace("2.0", "2.5"))
    with pytest.raises(InputError, match="hash"):
        Calibration.read(path)


@pytest.mark.parametrize("name", ["org/model", "."])
def test_a_models_name_is_no_calibration(name: str):
    with pytest.raises((InputError), match="lrp4rag calibrate"):
        Calibration.read(name)


@pytest.mark.parametrize("what", ["weights", "labels", "outputs", "tokenizer"])
def test_another_model_than_was_calibrated_is_refused(what: str, tmp_path: Path):
    folder = save_published(tmp_path / "m", NLI)
    calibration = Calibration.read(written(tmp_path / "c.json", folder))
    if what == "tokenizer":
        path = folder / "tokenizer.json"
        path.write_text(path.read_text().replace('"dragon"', '"wyvern"'))
    else:
        names = {"weights": NLI, "labels": NLI[::-1], "outputs": ("supported", "unsupported")}[what]
        save_published(folder, names, seed=int(what == "weights"))
    with pytest.raises(InputError, match="another model"):
        calibration.load("cpu")
