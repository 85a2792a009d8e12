"""A reader whose weights were saved quantised: loaded as it is, pushed, and never pulled."""

from __future__ import annotations

import importlib.util
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from transformers import LlamaConfig

from lrp4rag.cli import main
from lrp4rag.judge import analyse
from lrp4rag.lrp import attribute, relevance_mode
from lrp4rag.reader import Reader, ReaderIdentity, load_reader
from lrp4rag.reader.identity import require_identity
from lrp4rag.reader.weights import quantisation_words
from lrp4rag.util.errors import InputError, LRP4RAGError
from tests.lrp.checks import assert_close
from tests.tiny import bridge_example, save_tiny_reader

HINT = "quantised models need: pip install 'lrp4rag[quantised]'"
KINDS = ("bitsandbytes-double", "torchao")


def config_of(kind: str):
    from transformers import BitsAndBytesConfig, TorchAoConfig

    if kind == "torchao":
        quantization = pytest.importorskip("torchao.quantization", reason=HINT)
        return TorchAoConfig(quantization.Int8WeightOnlyConfig())
    pytest.importorskip("bitsandbytes", reason=HINT)
    return BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=kind != "bitsandbytes"
    )


@pytest.fixture(scope="module")
def plain_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plain") / "reader"
    return save_tiny_reader(folder, hidden_size=64, intermediate_size=128, num_attention_heads=4)


@pytest.fixture(scope="module", params=KINDS)
def quantised_folder(
    request: pytest.FixtureRequest, plain_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = tmp_path_factory.mktemp(request.param) / "reader"
    model = AutoModelForCausalLM.from_pretrained(
        plain_folder, dtype=torch.float32, quantization_config=config_of(request.param)
    )
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(plain_folder).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def quantised(quantised_folder: Path) -> Reader:
    return load_reader(str(quantised_folder), device="cpu")


@pytest.fixture(scope="module")
def plain(plain_folder: Path) -> Reader:
    return load_reader(str(plain_folder), device="cpu")


def test_it_stays_quantised_and_is_another_reader(
    quantised: Reader, plain: Reader, quantised_folder: Path, plain_folder: Path
) -> None:
    sizes = [(folder / "model.safetensors").stat().st_size for folder in (quantised_folder, plain_folder)]
    assert sizes[0] < 0.7 * sizes[1]
    assert type(quantised.model.model.layers[0].mlp.up_proj.weight) is not torch.nn.Parameter
    assert quantised.identity.digest != plain.identity.digest
    assert quantised.identity.config == plain.identity.config


def test_its_relevance_is_that_of_its_dequantised_weights(quantised_folder: Path, plain: Reader) -> None:
    from tests.lrp.quantise import twin

    # Loaded anew: a twin is made before the first call.
    quantised = load_reader(str(quantised_folder), device="cpu")
    encoded = quantised.encode(bridge_example())
    dequantised = twin(quantised.model, plain.model)
    expected = attribute(Reader(dequantised, quantised.tokenizer, quantised.identity), encoded, segments=True)
    actual = attribute(quantised, encoded, segments=True)
    tolerance = 3e-5 if "torchao" in str(quantised_folder) else 0.05  # see tests/lrp/test_quantised.py
    assert_close(torch.tensor(actual.response), torch.tensor(expected.response), tolerance)
    assert_close(torch.tensor(actual.by_segment), torch.tensor(expected.by_segment), tolerance)


def test_it_is_analysed_and_writes_its_own_response(quantised: Reader) -> None:
    analysis = analyse(bridge_example(response=None), quantised, None, max_new_tokens=5)
    assert analysis.generated
    assert len(analysis.relevance.response) == len(analysis.encoded.response_ids) > 0


def test_what_needs_pull_is_refused_before_anything_is_computed(
    quantised: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, encoded = quantised, quantised.encode(bridge_example())

    def computed(*_: object, **__: object) -> None:
        raise AssertionError("the model ran first")

    refused = pytest.raises(LRP4RAGError, match=r"gives no derivatives.*push")
    monkeypatch.setattr(Reader, "generate", computed)
    with refused:
        analyse(bridge_example(response=None), reader, None, rows=True)
    with relevance_mode(reader.model) as flow:
        handle = reader.model.model.layers[0].register_forward_pre_hook(computed)
        for options in ({"prompt": True}, {"matrix": True}, {"resampled": (2, 3)}):
            with refused:
                attribute(reader, encoded, flow=flow, **options)
        handle.remove()
        resampled = attribute(reader, encoded, flow=flow, resampled=(3, 2)).resampled
        assert resampled is not None  # of so few rows, push is enough
        assert resampled.shape == (3, 2)


def test_the_command_gives_evidence_and_refuses_a_page(quantised_folder: Path, tmp_path: Path) -> None:
    data, page, example = tmp_path / "one.json", tmp_path / "page.html", bridge_example()
    row = {"question": example.question, "passages": example.passages, "response": example.response}
    data.write_text(json.dumps(row))
    command = ["analyse", str(data), "--reader", str(quantised_folder), "--detector", "none"]
    command += ["--device", "cpu"]
    result = CliRunner().invoke(main, [*command, "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["sentences"]
    result = CliRunner().invoke(main, [*command, "--html", str(page)])
    assert result.exit_code == 1
    assert "gives no derivatives" in result.stderr
    assert not page.exists()


@pytest.mark.parametrize(
    ("written", "package"),
    [
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "bitsandbytes"),
        ({"load_in_8bit": True}, "bitsandbytes"),
        ({"quant_method": "torchao", "quant_type": {}}, "torchao"),
    ],
)
def test_a_missing_package_is_named_with_the_extra(
    written: dict[str, object], package: str, reader_folder: Path, tmp_path: Path, monkeypatch
) -> None:
    folder = Path(shutil.copytree(reader_folder, tmp_path / "reader"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"quantization_config": written}))
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == package else find(name, *rest)
    )
    with pytest.raises(InputError, match=rf"{package}, which is not installed.*lrp4rag\[quantised\]"):
        load_reader(str(folder), device="cpu")


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (None, ""),
        (
            {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
            "bitsandbytes NF4",
        ),
        (
            {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True},
            "bitsandbytes FP4, scales too",
        ),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, "bitsandbytes 8 bits"),
        ({"quant_method": "gptq", "bits": 4}, "gptq 4 bits"),
        ({"quant_method": "fbgemm_fp8"}, "fbgemm_fp8"),
    ],
)
def test_what_quantised_it_in_words(written: dict[str, object] | None, words: str) -> None:
    config = LlamaConfig() if written is None else LlamaConfig(quantization_config=written)
    assert quantisation_words(config) == words


def test_an_identity_tells_it_only_where_there_is_something_to_tell() -> None:
    fields = {
        "name": "x",
        "weights": "a",
        "config": "b",
        "tokenizer": "c",
        "template": "",
        "dtype": "float32",
    }
    plain = ReaderIdentity(**fields, chat_template=True)
    other = replace(plain, quantised="bitsandbytes NF4")
    assert "quantised" not in plain.as_dict()
    assert require_identity(plain.as_dict())
    assert require_identity(other.as_dict())["quantised"] == "bitsandbytes NF4"
    assert other.digest == plain.digest  # the weights tell it
    assert "quantised: bitsandbytes NF4" in str(other)
    with pytest.raises(ValueError, match="'quantised' must be a str"):
        require_identity(plain.as_dict() | {"quantised": 4})
