"""`Resources`: models that baselines share, and a cache of what they measure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from experiments.cache import Cache
from experiments.systems.chat import Chat, LocalChat, RemoteChat
from experiments.systems.encoders import MINILM, Embedder, identified
from lrp4rag.example import Example
from lrp4rag.reader.weights import DEFAULT_READER, label_of
from lrp4rag.training.rows import Rows
from lrp4rag.training.store import Store, key_of
from lrp4rag.util.errors import InputError
from lrp4rag.util.files import folder_written_whole, read_bytes, remove_leftovers
from lrp4rag.util.hashes import hash_of
from lrp4rag.util.progress import track
from lrp4rag.util.strict_json import LARGEST, parse

if TYPE_CHECKING:
    from experiments.systems.facts import Facts
    from lrp4rag.reader.reader import Reader

T = TypeVar("T")
SEEN = "lrp4rag_lessons.json"  # beside weights: hashes of question and passages they learned from
UNSEEN = 0.2  # the part of the sources that weights are not trained on, so that they can be calibrated


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Which models baselines use: the reader that judges, draws samples and is fine-tuned, with the options
    of `load_reader`; a model behind the OpenAI-compatible endpoint `judge_url` that judges instead; hub ids
    or folders for `entailment` and `token_classifier` (None: trained in the folds)."""

    name: str = DEFAULT_READER
    device: str | None = None
    dtype: str = "auto"
    chat_template: bool | None = None
    judge: str | None = None
    judge_url: str | None = None
    entailment: str | None = None
    token_classifier: str | None = None

    @classmethod
    def beside(cls, store: Store, name: str | None = None, **options: Any) -> ModelChoice:
        """The reader of a store with its prompt, unless another reader is named.

        Raises `InputError` where the store does not say where its reader's weights are.
        """
        stored = store.configuration.reader
        if name is None and stored["name"] != DEFAULT_READER:
            raise InputError(
                f"the store was read by {stored['name']}: name its folder or hub id with --reader, or the "
                "model that shall judge, draw samples and be fine-tuned instead",
                path=store.folder,
            )
        name = name or DEFAULT_READER
        if options.get("chat_template") is None and label_of(name) == stored["name"]:
            options["chat_template"] = stored["chat_template"]
        return cls(name, **options)

    def identified(self, field: str) -> str | None:
        """The model that a field names, by its weights or its endpoint."""
        model: str | None = getattr(self, field)
        return None if model is None else identified(model)

    def facts_of(self, facts: Facts) -> Facts:
        """With the models that replace a baseline's usual ones."""
        chosen = {field: model for field in facts.choices if (model := self.identified(field)) is not None}
        if not chosen:
            return facts
        trained = "" if set(chosen) == {"judge"} else ", where trained here"
        weights = f"{', '.join(chosen.values())} (by default: {facts.weights})"
        return replace(facts, weights=weights, training=facts.training + trained)

    def refuse_seen(self, examples: Sequence[Example]) -> None:
        """Raise `InputError` where a model that was trained here (`entailment`) has learned from these
        examples' sources, and where the list of what it learned from cannot be read."""
        file = Path(self.entailment or "") / SEEN
        if self.entailment is None or not file.is_file():
            return
        try:
            hashes = set(TypeAdapter(list[str]).validate_python(parse(read_bytes(file, LARGEST))))
        except ValueError as error:
            raise InputError(f"not a list of what a model learned from: {error}", path=file) from error
        seen = [example.id for example in examples if example.content_hash in hashes]
        if seen:
            raise InputError(
                f"this model has learned from {len(seen)} of the responses (first: '{seen[0]}'); train it on "
                "others, or leave --entailment out, which trains it inside the folds",
                path=self.entailment,
            )


@dataclass(frozen=True, eq=False)
class Resources:
    """Models are loaded when first asked for. `training_rows` are the rows that weights may be trained on
    (None: those that a baseline is fitted on)."""

    cache: Cache = field(default_factory=Cache)
    choice: ModelChoice = ModelChoice()
    seed: int = 0
    training_rows: Rows | None = None
    _loaded: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def settings(self) -> dict[str, Any]:
        """What results depend on beside the rows; the device is not part of it."""
        choice = self.choice
        models = {field: choice.identified(field) for field in ("judge", "entailment", "token_classifier")}
        url = None if choice.judge is None else RemoteChat(choice.judge, choice.judge_url).url
        settings = {"reader": label_of(choice.name), "dtype": choice.dtype, "seed": self.seed}
        plain = {} if choice.chat_template is not False else {"chat_template": False}
        return {**settings, **models, "judge_url": url, **plain}

    def settings_of(self, facts: Facts) -> dict[str, Any]:
        """Those that a baseline depends on."""
        unused = {"judge", "entailment", "token_classifier"}.difference(facts.choices)
        unused |= {"judge_url"} & {f"{name}_url" for name in unused}
        return {name: value for name, value in self.settings.items() if name not in unused}

    @property
    def uncached(self) -> Resources:
        """The same models without measurements: for a clock, which measures each response anew."""
        return replace(self, cache=Cache())

    @property
    def reader(self) -> Reader:
        return self.once("reader", self._load_reader)

    def _load_reader(self) -> Reader:
        from transformers.utils import logging

        from lrp4rag.reader import load_reader

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        one = self.choice
        return load_reader(one.name, device=one.device, dtype=one.dtype, chat_template=one.chat_template)

    @property
    def embedder(self) -> Embedder:
        return self.once("embedder", lambda: Embedder.load(device=self.choice.device))

    @property
    def chat(self) -> Chat:
        """The model that judges."""
        if self.choice.judge_url is not None and self.choice.judge is None:
            raise InputError("an endpoint was given and no model: name it with --judge")
        if self.choice.judge is not None:
            return RemoteChat(self.choice.judge, self.choice.judge_url)
        return LocalChat(self.reader)

    def once(self, name: str, load: Callable[[], T], of: str = "") -> T:
        """Load a model once under this name. Where each fold has one (`of`), only the last one is held."""
        if name not in self._loaded or self._loaded[name][0] != of:
            self._loaded.pop(name, None)  # before the next one takes as much memory
            self._loaded[name] = of, load()
        model: T = self._loaded[name][1]
        return model

    def measured(
        self,
        name: str,
        settings: Mapping[str, Any],
        examples: Sequence[Example],
        kind: type[T],
        measure: Callable[[list[Example]], Sequence[T]],
    ) -> list[T]:
        """Measure each example, or read its measurement of this `kind` from the cache.

        `measure` is given examples with one question and the same passages at a time and must not look at
        labels. `settings` say what its values depend on beside the examples.
        """
        groups: dict[tuple[str, ...], dict[str, Example]] = {}
        for example in examples:
            # Not by their hash, which is the same for texts that differ in white space.
            group = groups.setdefault((example.question, *example.passages), {})
            group.setdefault(key_of(example), example)
        key = json.dumps(dict(settings), sort_keys=True)
        values: dict[str, Any] = {}
        for group in track(groups.values(), len(groups), f"measuring: {name}"):
            arguments = name, key, tuple(group), measure, list(group.values())
            results = self.cache.call(
                _measured,
                *arguments,
                ignore=("measure", "examples"),
                kind=list[kind],  # type: ignore[valid-type]
            )
            values |= dict(zip(group, results, strict=True))
        return [values[key_of(example)] for example in examples]

    def trained(
        self,
        rows: Rows,
        settings: Mapping[str, Any],
        train: Callable[[list[Example], Path], None],
        load: Callable[[str], T],
        *,
        training_rows: Rows | None = None,
        published: str | None = None,
    ) -> tuple[T, NDArray[np.bool_]]:
        """The `published` model if one was chosen, which has seen none of the rows; otherwise the one that
        `train` writes to a folder, once for the same training rows and settings. And which of the rows (R,)
        it has not seen. The training rows are those of the resources, unless others are given, less the
        sources that stay unseen."""
        if published is not None:
            loaded = self.once(f"published {settings['kind']}", lambda: load(published))
            return loaded, np.ones(len(rows), dtype=bool)
        learned = training_rows or self.training_rows or rows
        seen = seen_sources(learned, self.seed)
        examples = [each for each in learned.examples if each.source in set(seen.tolist())]
        content = json.dumps([dict(settings), learned.digest, self.seed, UNSEEN, MINILM], sort_keys=True)
        kind = settings["kind"]
        parent = self.cache.place / "weights"
        folder = parent / f"{kind}-{hash_of(content)[:16]}"
        if not folder.is_dir():
            parent.mkdir(parents=True, exist_ok=True)
            remove_leftovers(parent)
            with folder_written_whole(folder) as partial:
                train(examples, partial)
        model = self.once(kind, lambda: load(str(folder)), of=str(folder))
        return model, ~np.isin(rows.groups, seen)


def seen_sources(rows: Rows, seed: int) -> NDArray[np.str_]:
    """The sources that weights are trained on, drawn once."""
    order: NDArray[np.str_] = np.random.default_rng(seed).permutation(np.unique(rows.groups))
    return order[: round((1 - UNSEEN) * len(order))]


def _measured(
    name: str,
    settings: str,
    keys: tuple[str, ...],
    measure: Callable[[list[Any]], Sequence[T]],
    examples: list[Any],
) -> Sequence[T]:
    return measure(examples)
