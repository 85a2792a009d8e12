"""Fine-tuned LLM: the reader with a classification head, adapted by LoRA (Hu et al., arXiv 2106.09685) to
tell whether a response is hallucinated. LRP4RAG compares with such models (arXiv 2408.15533, Table 2)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.systems.baseline import Measured, Measurement, TrainedModel
from experiments.systems.encoders.running import outputs, seeded
from experiments.systems.encoders.training import Item, Training, finetune
from experiments.systems.facts import LABELS, Facts, optional
from experiments.systems.resources import Resources
from experiments.systems.trained import model_of_fold, save
from lrp4rag.example import Example
from lrp4rag.training.rows import Rows
from lrp4rag.util.errors import InputError

if TYPE_CHECKING:
    from lrp4rag.reader.reader import Reader

TRAINING = Training(epochs=2, rate=2e-4, batch=8)
RANK, ALPHA, DROPOUT = 8, 16, 0.05
TARGETS = ("q_proj", "v_proj")
TOKENS_A_PASS = 1024  # of training, whose activations are held: 8 responses together took 20 GB


@dataclass(frozen=True, slots=True)
class SequenceClassifier:
    """A causal model with a head of two labels on its last token's state, the second for hallucinated."""

    name: str
    model: Any
    reader: Reader

    def __call__(self, examples: list[Example]) -> np.ndarray:
        """Log odds that each response is hallucinated, (examples,)."""
        items = [item_of(example, self.reader) for example in examples]
        encoded = {name: [item[name] for item in items] for name in ("input_ids", "attention_mask")}
        found = np.zeros(len(items))
        for chosen, _, output in outputs(self.model, encoded, self.reader.tokenizer, self.model.device):
            logits = output.logits.double()
            found[chosen] = (logits[:, 1] - logits[:, 0]).cpu().numpy()
        return found


def classifier_of(rows: Rows, resources: Resources) -> TrainedModel[SequenceClassifier]:
    """Trained on the rows given, which are few: every one costs a forward and a backward pass."""
    settings = {
        "kind": "lora",
        "reader": resources.reader.identity.digest,
        "training": asdict(TRAINING),
        "lora": [RANK, ALPHA, DROPOUT, *TARGETS],
    }
    load = partial(load_llm, resources=resources)
    return model_of_fold(rows, resources, settings, train_llm, load, training_rows=rows)


def train_llm(examples: list[Example], resources: Resources, folder: Path) -> None:
    """Train an adapter and the head on labelled examples, and save both to a folder.

    Raises `InputError` for a reader without such a head, or without the projections that are adapted.
    """
    peft = optional("peft")
    reader = resources.reader
    lora = peft.LoraConfig(
        task_type=peft.TaskType.SEQ_CLS,
        r=RANK,
        lora_alpha=ALPHA,
        lora_dropout=DROPOUT,
        target_modules=list(TARGETS),
    )
    with seeded(resources.seed):  # head and adapter are drawn
        try:
            adapted = peft.get_peft_model(_headed(resources), lora)
        except ValueError as error:
            raise InputError(f"LoRA cannot adapt {reader.identity}: {error}") from error
    items = [item_of(example, reader) | {"labels": int(bool(example.labels))} for example in examples]
    label = "fine-tuning the reader"
    save(finetune(adapted, reader.tokenizer, items, TRAINING, label, tokens=TOKENS_A_PASS), None, folder)


def load_llm(folder: str | Path, resources: Resources) -> SequenceClassifier:
    """The reader with the adapter and head of a folder."""
    model = optional("peft").PeftModel.from_pretrained(_headed(resources), folder)
    return SequenceClassifier(Path(folder).name, model.eval(), resources.reader)


def item_of(example: Example, reader: Reader) -> Item:
    """Prompt and response as the reader replays them. What exceeds the window is an `InputError`."""
    encoded = reader.encode(example)
    ids = [*encoded.prompt_ids, *encoded.response_ids]
    return {"input_ids": ids, "attention_mask": [1] * len(ids)}


def measure(rows: Rows, resources: Resources, model: SequenceClassifier) -> list[Measurement]:
    """One number: the log odds of the head."""

    def group(examples: list[Example]) -> list[Measurement]:
        return [Measurement(np.array([value])) for value in model(examples)]

    return resources.measured("fine-tuned", {"model": model.name}, rows.examples, Measurement, group)


def _headed(resources: Resources) -> Any:
    """The reader's weights under a new head, in float32: what learns must not be rounded."""
    import torch
    from transformers import AutoModelForSequenceClassification

    from lrp4rag.reader.weights import pretrained, resolve

    reader = resources.reader
    with seeded(resources.seed):
        model = pretrained(
            AutoModelForSequenceClassification,
            resolve(resources.choices.reader),
            num_labels=2,
            dtype=torch.float32,
            use_safetensors=True,
        )
    if reader.tokenizer.pad_token_id is None:
        reader.tokenizer.pad_token = reader.tokenizer.eos_token
    model.config.pad_token_id = reader.tokenizer.pad_token_id  # the head reads the last token before padding
    return model.to(reader.model.device)


FINE_TUNED = Measured(
    Facts(
        "Fine-tuned LLM, LoRA",
        "arXiv 2408.15533, Table 2",
        "text",
        LABELS,
        "the reader's, an adapter and a head trained in the folds",
        slow=True,
        modules=("peft",),
    ),
    measure,
    ("log odds",),
    model_of=classifier_of,
)
