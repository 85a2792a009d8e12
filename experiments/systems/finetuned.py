"""Fine-tuned LLM: the reader with a classification head, adapted by LoRA (Hu et al., arXiv 2106.09685) to
tell whether a response is hallucinated. LRP4RAG compares with such models (arXiv 2408.15533, Table 2)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.systems.baseline import Measured, Measurement, TrainedModel
from experiments.systems.encoders import Item, Training, finetune, optional, outputs, seeded
from experiments.systems.facts import LABELS, Facts
from experiments.systems.resources import Resources
from lrp4rag.example import Example
from lrp4rag.training.rows import Rows
from lrp4rag.util.errors import InputError

if TYPE_CHECKING:
    from lrp4rag.reader.reader import Reader

TRAINING = Training(epochs=2, rate=2e-4, batch=8, together=1)  # 8 responses in one pass took 20 GB
LORA: dict[str, Any] = {
    "r": 8,
    "lora_alpha": 16,
    "lora_dropout": 0.05,
    "target_modules": ["q_proj", "v_proj"],
}


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
        scores = np.zeros(len(items))
        for indices, _, output in outputs(self.model, encoded, self.reader.tokenizer, self.model.device):
            logits = output.logits.double()
            scores[indices] = (logits[:, 1] - logits[:, 0]).cpu().numpy()
        return scores


def classifier_of(rows: Rows, resources: Resources) -> TrainedModel[SequenceClassifier]:
    """Trained on the rows given, which are few: every one costs a forward and a backward pass."""
    settings = {
        "kind": "lora",
        "reader": resources.reader.identity.digest,
        "training": asdict(TRAINING),
        "lora": LORA,
    }
    load = partial(load_llm, resources)

    def train(examples: list[Example], folder: Path) -> None:
        train_llm(resources, examples, folder)

    return TrainedModel(*resources.trained(rows, settings, train, load, training_rows=rows))


def train_llm(resources: Resources, examples: list[Example], folder: Path) -> None:
    """Train an adapter and the head on labelled examples, and save both to a folder.

    Raises `InputError` for a reader without such a head, or without the projections that are adapted.
    """
    peft = optional("peft")
    reader = resources.reader
    with seeded(resources.seed):  # head and adapter are drawn
        try:
            configuration = peft.LoraConfig(task_type=peft.TaskType.SEQ_CLS, **LORA)
            adapted = peft.get_peft_model(_with_head(resources), configuration)
        except ValueError as error:
            raise InputError(f"LoRA cannot adapt {reader.identity}: {error}") from error
    items = [item_of(example, reader) | {"labels": int(bool(example.labels))} for example in examples]
    finetune(adapted, reader.tokenizer, items, TRAINING).save_pretrained(folder, safe_serialization=True)


def load_llm(resources: Resources, folder: str | Path) -> SequenceClassifier:
    """The reader with the adapter and head of a folder."""
    model = optional("peft").PeftModel.from_pretrained(_with_head(resources), folder)
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


def _with_head(resources: Resources) -> Any:
    """The reader's weights under a new head, in float32: what learns must not be rounded."""
    import torch
    from transformers import AutoModelForSequenceClassification

    from lrp4rag.reader.weights import pretrained, resolve

    reader = resources.reader
    with seeded(resources.seed):
        model = pretrained(
            AutoModelForSequenceClassification,
            resolve(resources.choice.name),
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
