"""Small encoders that baselines read with: embeddings, support of a sentence, hallucinated tokens; and how
they are fine-tuned."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.systems.scoring import PartScores
from lrp4rag.reader.comparer import ENCODER_PACKAGE, encoder_folder
from lrp4rag.reader.encoding import tokens_in
from lrp4rag.util.errors import InputError
from lrp4rag.util.sentences import sentences_in

MINILM = "minilm"
"""all-MiniLM-L6-v2 (22M parameters, Apache-2.0), a sentence embedder."""
MINILM_PACKAGE = ENCODER_PACKAGE

TOKENS_A_BATCH = 4096
EMBEDDED, PAIR, WINDOW = 256, 512, 4096
"""Tokens that are read of a text to embed, of a premise and hypothesis, and of a window of a response."""
T5_PAIR = 2048  # T5 counts distances, not places
SUPPORT = ("entailment", "entail", "supported", "consistent", "factual", "aligned")
"""What the label of support is called."""
HHEM, FLAN = "vectara/hallucination_evaluation_model", "google/flan-t5-base"
HHEM_PROMPT = (
    "<pad> Determine if the hypothesis is true given the premise?\n\nPremise: {premise}\n\n"
    "Hypothesis: {hypothesis}"
)
MINICHECK = "lytang/MiniCheck-Flan-T5-Large"
MINICHECK_PROMPT = "predict: {premise}</s>{hypothesis}"
MINICHECK_ANSWERS = (3, 209)
"""Tokens of the first place of the answer: not supported, supported."""
PICKLED = ("alignscore", "yzha/AlignScore")
IGNORED = -100  # a token without label, as transformers has it

Pair = tuple[str, str]
"""Premise and hypothesis."""
Item = dict[str, Any]
"""A tokenised text: lists `input_ids`, `attention_mask` ..., and `labels`, one number or one for each
token."""


def optional(module: str) -> Any:
    """Import a package that only some baselines need; raise `InputError` that says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise InputError(f"this baseline needs {module}: pip install 'lrp4rag[baselines]'") from error


def load_encoder(
    name: str,
    kind: Any,
    *,
    tokenizer_of: str | None = None,
    device: str | None = None,
    complete: bool = False,
    **options: Any,
) -> tuple[Any, Any]:
    """Load a model of this class of transformers and its tokenizer (from `tokenizer_of`, if from elsewhere):
    MINILM, a folder, or a hub id.

    No remote code is run, and pickled weights are not loaded. Raises `InputError` where they cannot be
    loaded, and where a `complete` model is asked for and weights are missing (transformers draws those at
    random).
    """
    from transformers import AutoTokenizer
    from transformers.utils import logging

    from lrp4rag.reader.reader import check_device
    from lrp4rag.reader.weights import pretrained, reason

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    place = str(encoder_folder()) if name == MINILM else name
    try:
        tokenizer = pretrained(AutoTokenizer, tokenizer_of or place)
        model, report = pretrained(kind, place, use_safetensors=True, output_loading_info=True, **options)
    except Exception as error:  # transformers raises many kinds for folders it cannot read
        raise InputError(f"cannot load encoder '{name}': {reason(error)}") from error
    missing = sorted(report["missing_keys"])
    if complete and missing:
        raise InputError(
            f"'{name}' is not trained for this: {len(missing)} weights are missing, among them {missing[0]}"
        )
    return model.to(check_device(device)).eval(), tokenizer


def identified(name: str) -> str:
    """A model's name; of a folder the last part and a hash of its weights, which may change while the name
    does not."""
    from lrp4rag.reader.weights import weights_hash

    path = Path(name)
    return f"{path.name} ({weights_hash(path)[:16]})" if path.is_dir() else name


# Texts.


def chunk_spans(text: str, words: int) -> list[tuple[int, int]]:
    """Characters of runs of whole sentences with at most `words` words, or of a single longer sentence."""
    spans: list[tuple[int, int]] = []
    count = 0
    for start, end in sentences_in(text):
        length = len(text[start:end].split())
        if spans and count + length <= words:
            spans[-1] = (spans[-1][0], end)
            count += length
        else:
            spans.append((start, end))
            count = length
    return spans


def chunks_of(texts: Iterable[str], words: int) -> list[str]:
    """The chunks of each text, one text after the other."""
    return [text[start:end] for text in texts for start, end in chunk_spans(text, words)]


def batches(lengths: Sequence[int], tokens: int = TOKENS_A_BATCH) -> Iterator[NDArray[np.intp]]:
    """Indices of texts, shortest first, so that a padded batch has at most so many tokens, or one text."""
    order = np.argsort(lengths, kind="stable")
    start = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or (end + 1 - start) * lengths[order[end]] > tokens:
            yield order[start:end]
            start = end


def outputs(
    run: Callable[..., Any], encoded: Mapping[str, Sequence[Any]], tokenizer: Any, device: Any
) -> Iterator[tuple[NDArray[np.intp], Any, Any]]:
    """Run a model without gradients over tokenised texts: for each batch the indices of its texts, the padded
    tensors, and the model's output."""
    import torch

    for indices in batches([len(ids) for ids in encoded["input_ids"]]):
        part = {name: [values[k] for k in indices] for name, values in encoded.items()}
        batch = tokenizer.pad(part, return_tensors="pt").to(device)
        with torch.no_grad(), autocast(str(device)):
            output = run(**batch)
        yield indices, batch, output


def token_limit(config: Any, tokenizer: Any, most: int) -> int:
    """Tokens that a model reads at once: at most `most`, and what positions and tokenizer allow."""
    return int(min(getattr(config, "max_position_embeddings", most), tokenizer.model_max_length, most))


def encoded_pair(tokenizer: Any, first: str, second: str, longest: int, **options: Any) -> Any:
    """Two texts as one input of at most `longest` tokens. The first is cut off; so is the second where it
    leaves no room for the first."""
    room = longest - tokenizer.num_special_tokens_to_add(pair=True)
    fits = len(tokenizer(second, add_special_tokens=False, verbose=False)["input_ids"]) < room
    return tokenizer(
        first, second, truncation="only_first" if fits else "longest_first", max_length=longest, **options
    )


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """torch draws from this seed inside, and continues as before after it."""
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


def autocast(device: str | None = None) -> AbstractContextManager[Any]:
    """bfloat16 where this device is faster in it."""
    import torch

    from lrp4rag.reader.reader import check_device, fastest_dtype

    name = check_device(device)
    fast = fastest_dtype(name) == "bfloat16"
    return torch.autocast(name.split(":")[0], dtype=torch.bfloat16, enabled=fast)


# Models.


@dataclass(frozen=True, slots=True)
class Embedder:
    """Texts as unit vectors: the mean of an encoder's last states over a text's tokens, normalised."""

    model: Any
    tokenizer: Any

    @classmethod
    def load(cls, name: str = MINILM, device: str | None = None) -> Embedder:
        """Raises `InputError` where the weights cannot be loaded."""
        from transformers import AutoModel

        return cls(*load_encoder(name, AutoModel, device=device))

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(texts, d); what exceeds `EMBEDDED` tokens is not read."""
        import torch

        vectors = np.zeros((len(texts), self.model.config.hidden_size), np.float32)
        if not texts:
            return vectors
        encoded = self.tokenizer(list(texts), truncation=True, max_length=EMBEDDED)
        for indices, batch, output in outputs(self.model, encoded, self.tokenizer, self.model.device):
            inside = batch["attention_mask"][..., None]
            means = (output.last_hidden_state.float() * inside).sum(1) / inside.sum(1)
            vectors[indices] = torch.nn.functional.normalize(means, dim=-1).cpu().numpy()
        return vectors


@dataclass(frozen=True, slots=True)
class CrossEncoder:
    """A sequence classifier that reads premise and hypothesis together; `support` is the number of the label
    that means support, None for a single logit."""

    name: str
    model: Any
    tokenizer: Any
    support: int | None

    @classmethod
    def load(cls, name: str, device: str | None = None) -> CrossEncoder:
        """A hub id or a folder. Raises `InputError` for a model that needs code of its own, has pickled
        weights only, no trained head, or no label that means support."""
        from transformers import AutoModelForSequenceClassification

        kind = AutoModelForSequenceClassification
        model, tokenizer = load_encoder(name, kind, device=device, complete=True)
        return cls(identified(name), model, tokenizer, support_label(model.config, name))

    def __call__(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """The probability that each premise supports its hypothesis, (pairs,). What exceeds the limit is cut
        off the longer text of a pair."""
        import torch

        support = np.zeros(len(pairs))
        if not pairs:
            return support
        longest = token_limit(self.model.config, self.tokenizer, PAIR)
        texts = map(list, zip(*pairs, strict=True))
        encoded = self.tokenizer(*texts, truncation=True, max_length=longest)
        for indices, _, output in outputs(self.model, encoded, self.tokenizer, self.model.device):
            logits = output.logits.float()
            one = self.support is None
            shares = torch.sigmoid(logits[:, 0]) if one else torch.softmax(logits, -1)[:, self.support]
            support[indices] = shares.cpu().numpy()
        return support


def support_label(config: Any, name: str) -> int | None:
    """The number of the label that means support, None for a model with one logit.

    Raises `InputError` where no label's name says so; two labels without names are "no" and "yes".
    """
    labels = {int(k): str(label).lower() for k, label in config.id2label.items()}
    if len(labels) == 1:
        return None
    for k, label in labels.items():
        if label in SUPPORT:
            return k
    if len(labels) == 2 and all(label == f"label_{k}" for k, label in labels.items()):
        return 1
    raise InputError(f"no label of '{name}' means support: {', '.join(labels.values())}")


@dataclass(frozen=True, slots=True)
class T5Entailment:
    """A published model on T5, which runs without its authors' code: what that adds to transformers' own
    class is a `prompt` with places for premise and hypothesis, and where the answer is read. With `answers`
    the model writes, and the two tokens are compared at the first place; otherwise it is a classifier whose
    second label is read at the first token."""

    name: str
    model: Any
    tokenizer: Any
    prompt: str
    answers: tuple[int, int] | None = None

    def __call__(self, pairs: Sequence[Pair]) -> NDArray[np.float64]:
        """The probability that each premise supports its hypothesis, (pairs,)."""
        import torch

        support = np.zeros(len(pairs))
        if not pairs:
            return support
        texts = [self.prompt.format(premise=premise, hypothesis=text) for premise, text in pairs]
        encoded = self.tokenizer(texts, truncation=True, max_length=T5_PAIR)
        for indices, _, logits in outputs(self._logits, encoded, self.tokenizer, self.model.device):
            support[indices] = torch.softmax(logits.float(), -1)[:, 1].cpu().numpy()
        return support

    def _logits(self, **batch: Any) -> Any:
        """Of "not supported" and "supported", (pairs, 2)."""
        import torch

        if self.answers is None:
            return self.model(**batch).logits[:, 0]
        start = self.model.config.decoder_start_token_id
        first = torch.full((len(batch["input_ids"]), 1), start, device=self.model.device)
        return self.model(**batch, decoder_input_ids=first).logits[:, 0][:, list(self.answers)]


def load_hhem(weights: str = HHEM, foundation: str = FLAN, device: str | None = None) -> T5Entailment:
    """HHEM-2.1-Open: a token classifier on Flan-T5-base, stored under the prefix "t5."."""
    from transformers import AutoConfig, T5ForTokenClassification

    from lrp4rag.reader.weights import pretrained

    config = pretrained(AutoConfig, foundation)
    config.num_labels = 2
    options = {"complete": True, "config": config, "key_mapping": {r"^t5\.": ""}}
    kind = T5ForTokenClassification
    model, tokenizer = load_encoder(weights, kind, tokenizer_of=foundation, device=device, **options)
    return T5Entailment("hhem", model, tokenizer, HHEM_PROMPT)


def load_minicheck(weights: str = MINICHECK, device: str | None = None) -> T5Entailment:
    """MiniCheck-Flan-T5-Large (arXiv 2404.10774), which writes its answer."""
    from transformers import AutoModelForSeq2SeqLM

    model, tokenizer = load_encoder(weights, AutoModelForSeq2SeqLM, device=device, complete=True)
    return T5Entailment("minicheck", model, tokenizer, MINICHECK_PROMPT, MINICHECK_ANSWERS)


Entailment = CrossEncoder | T5Entailment
"""Gives the probability that a premise supports a hypothesis."""
PUBLISHED: dict[str, Callable[..., Entailment]] = {"hhem": load_hhem, "minicheck": load_minicheck}
"""Published models that transformers does not load by itself, by their short names."""


def load_entailment(name: str, device: str | None = None) -> Entailment:
    """A short name of `PUBLISHED`, or what `CrossEncoder.load` takes, and raises."""
    if name in PICKLED:
        raise InputError(
            "AlignScore's checkpoints are pickled, which is not loaded; convert its three-label head to a "
            "folder with safetensors (labels entailment, neutral, contradiction) and name that"
        )
    return PUBLISHED[name](device=device) if name in PUBLISHED else CrossEncoder.load(name, device)


@dataclass(frozen=True, slots=True)
class Window:
    """An input of a token classifier: a `context`, and the `text` of the response from character `start`
    on."""

    context: str
    text: str
    start: int


@dataclass(frozen=True, slots=True)
class TokenClassifier:
    """A token classifier with two labels, the second for hallucinated tokens."""

    name: str
    model: Any
    tokenizer: Any

    @classmethod
    def load(cls, name: str, device: str | None = None) -> TokenClassifier:
        """A hub id or a folder. Raises `InputError` for a model without a trained head of two labels."""
        from transformers import AutoModelForTokenClassification

        kind = AutoModelForTokenClassification
        model, tokenizer = load_encoder(name, kind, device=device, complete=True)
        if model.config.num_labels != 2:
            raise InputError(f"'{name}' has {model.config.num_labels} labels of tokens, not 2")
        return cls(identified(name), model, tokenizer)

    @property
    def longest(self) -> int:
        """Tokens of a window that are read."""
        return token_limit(self.model.config, self.tokenizer, WINDOW)

    def __call__(self, windows: Sequence[Window]) -> list[PartScores]:
        """Of each window: its tokens by their characters in the response, and the probability that each is
        hallucinated."""
        import torch

        if not windows:
            return []
        items, spans, places = zip(
            *(encoded_window(window, self.tokenizer, self.longest) for window in windows), strict=True
        )
        encoded = {name: [item[name] for item in items] for name in items[0]}
        scores: dict[int, NDArray[np.float64]] = {}
        for indices, _, output in outputs(self.model, encoded, self.tokenizer, self.model.device):
            probabilities = torch.softmax(output.logits.float(), -1)[..., 1].double().cpu().numpy()
            scores |= {int(k): row[places[k]] for k, row in zip(indices, probabilities, strict=True)}
        return [PartScores(span, scores[k]) for k, span in enumerate(spans)]


def encoded_window(
    window: Window, tokenizer: Any, longest: int
) -> tuple[Item, NDArray[np.intp], NDArray[np.intp]]:
    """The model's input, the response's characters of each token of the window (T, 2), and the places of
    these tokens in the input (T,). Context is cut off where both do not fit (see `encoded_pair`)."""
    encoded = encoded_pair(tokenizer, window.context, window.text, longest, return_offsets_mapping=True)
    offsets = encoded.pop("offset_mapping")
    places = [k for k, which in enumerate(encoded.sequence_ids(0)) if which == 1]
    spans = np.array([offsets[k] for k in places], dtype=np.intp).reshape(-1, 2) + window.start
    return dict(encoded), spans, np.array(places, dtype=np.intp)


def labelled_window(
    window: Window, annotated: Sequence[tuple[int, int]], tokenizer: Any, longest: int
) -> Item:
    """The input with labels: 1 for tokens of the response that share a character with a span, else 0."""
    item, spans, places = encoded_window(window, tokenizer, longest)
    flags = tokens_in([(int(start), int(end)) for start, end in spans], annotated)
    labels = np.full(len(item["input_ids"]), IGNORED)
    labels[places] = flags
    return {**item, "labels": labels.tolist()}


# Fine-tuning.


@dataclass(frozen=True, slots=True)
class Training:
    """AdamW with a linear warm-up and decay; gradients are clipped at norm 1. `head_rate` is the head's rate
    where it differs. `batch` items make a step, `together` of them (default: all) in one pass.

    Drawing the dropout of attention takes longer on a CPU than the rest of a step, so encoders go without.
    """

    epochs: int = 2
    rate: float = 5e-5
    batch: int = 16
    warmup: float = 0.1
    decay: float = 0.01
    seed: int = 0
    attention_dropout: float = 0.0
    head_rate: float | None = None
    together: int | None = None

    def steps(self, items: int) -> int:
        """Steps of gradient descent: full and last batches of each epoch."""
        return self.epochs * -(-items // self.batch)


AfterEpoch = Callable[[int, Any, Any], None]
"""Is called with the number of finished epochs, the model in evaluation mode and its tokenizer."""


def finetune(
    model: Any,
    tokenizer: Any,
    items: Sequence[Item],
    training: Training,
    after_epoch: AfterEpoch | None = None,
) -> Any:
    """Train a model of transformers on items with labels; the seed decides what is drawn. Returns the model
    in evaluation mode. Only parameters that ask for a gradient learn. Raises `ValueError` without items."""
    import torch
    from transformers import (
        DataCollatorForTokenClassification,
        DataCollatorWithPadding,
        PrinterCallback,
        Trainer,
        TrainerCallback,
        TrainingArguments,
    )

    if not items:
        raise ValueError("there is nothing to learn from")

    class Epochs(TrainerCallback):
        def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if after_epoch is not None:
                after_epoch(round(state.epoch), model.eval(), tokenizer)

    of_tokens = isinstance(items[0]["labels"], list)
    together = training.together or training.batch
    with TemporaryDirectory(prefix="lrp4rag-") as folder, seeded(training.seed):
        arguments = TrainingArguments(
            output_dir=folder,
            num_train_epochs=training.epochs,
            per_device_train_batch_size=together,
            gradient_accumulation_steps=training.batch // together,
            warmup_steps=training.warmup,
            train_sampling_strategy="group_by_length",
            use_cpu=model.device.type == "cpu",
            seed=training.seed,
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
            dataloader_pin_memory=False,
        )
        optimizer = torch.optim.AdamW(
            _parameter_groups(model, training), lr=training.rate, weight_decay=training.decay
        )
        trainer = Trainer(
            model,
            arguments,
            data_collator=(DataCollatorForTokenClassification if of_tokens else DataCollatorWithPadding)(
                tokenizer
            ),
            train_dataset=list(items),
            callbacks=[Epochs()],
            optimizers=(optimizer, None),
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return model.eval()


def _parameter_groups(model: Any, training: Training) -> list[dict[str, Any]]:
    """The parameters that learn; the head, which is all outside the base, has its own rate."""
    learning = {name: one for name, one in model.named_parameters() if one.requires_grad}
    base = f"{model.base_model_prefix}."
    inside = [one for name, one in learning.items() if name.startswith(base)]
    head = [one for name, one in learning.items() if not name.startswith(base)]
    return [{"params": inside}, {"params": head, "lr": training.head_rate or training.rate}]
