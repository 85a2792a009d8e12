"""`Resources`: what baselines share: models, settings, and a folder that caches what takes long."""

from __future__ import annotations

import atexit
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, TypeVar

from experiments.cache import make_way
from experiments.records import UNREADABLE, from_json, to_json
from experiments.systems.chat import Chat, LocalChat, RemoteChat
from experiments.systems.encoders.embedder import Embedder
from experiments.systems.encoders.weights import identified
from experiments.systems.facts import Facts
from lrp4rag.example import Example
from lrp4rag.reader.weights import DEFAULT_READER, label_of
from lrp4rag.training.rows import Rows
from lrp4rag.training.store import Store, key_of
from lrp4rag.util.errors import InputError
from lrp4rag.util.files import read_bytes, remove_leftovers, write_atomically
from lrp4rag.util.hashes import hash_of
from lrp4rag.util.progress import track
from lrp4rag.util.strict_json import LARGEST, parse

if TYPE_CHECKING:
    from lrp4rag.reader.reader import Reader

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Choices:
    """Which models baselines use. `chat_template` is the reader's, as for `load_reader`; `judge` is a model
    behind the OpenAI-compatible endpoint `judge_url` (None: the reader judges); `entailment` and
    `token_classifier` are hub ids or folders (None: trained in the folds)."""

    reader: str = DEFAULT_READER
    device: str | None = None
    dtype: str = "auto"
    judge: str | None = None
    judge_url: str | None = None
    entailment: str | None = None
    token_classifier: str | None = None
    chat_template: bool | None = None

    @classmethod
    def beside(cls, store: Store, reader: str | None = None, **others: Any) -> Choices:
        """The reader of a store with its prompt, unless another reader is named.

        Raises `InputError` where the store does not say where its reader's weights are.
        """
        stored = store.configuration.reader
        if reader is None and stored["name"] != DEFAULT_READER:
            raise InputError(
                f"the store was read by {stored['name']}: name its folder or hub id with --reader, or the "
                "model that shall judge, draw samples and be fine-tuned instead",
                path=store.folder,
            )
        reader = reader or DEFAULT_READER
        if others.get("chat_template") is None and label_of(reader) == stored["name"]:
            others["chat_template"] = stored["chat_template"]
        return cls(reader, **others)

    def facts_of(self, facts: Facts) -> Facts:
        """With the models that replace a baseline's usual ones."""
        named = {field: getattr(self, field) for field in facts.choices}
        chosen = {field: identified(model) for field, model in named.items() if model is not None}
        if not chosen:
            return facts
        trained = "" if set(chosen) == {"judge"} else ", where trained here"
        return replace(
            facts,
            weights=f"{', '.join(chosen.values())} (by default: {facts.weights})",
            training=facts.training + trained,
        )


@dataclass(frozen=True, eq=False)
class Resources:
    """Models are loaded when first asked for. `training_rows` are the rows that weights may be trained on
    (None: those that a baseline is fitted on). Measurements are cached in `measurements`, and in `folder`
    unless that is None."""

    folder: Path | None = None
    choices: Choices = Choices()
    seed: int = 0
    training_rows: Rows | None = None
    measurements: dict[str, Any] = field(default_factory=dict, repr=False)
    _loaded: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def settings(self) -> dict[str, Any]:
        """What results depend on beside the rows, which the device is not part of."""
        choices = self.choices
        models = {name: getattr(choices, name) for name in ("reader", "entailment", "token_classifier")}
        known = {name: None if one is None else identified(one) for name, one in models.items()}
        if choices.judge is not None:
            known["judge_url"] = RemoteChat(choices.judge, choices.judge_url).url
        settings = {**asdict(choices), **known, "seed": self.seed}
        del settings["device"]
        if choices.chat_template is not False:
            del settings["chat_template"]
        return settings

    def settings_of(self, facts: Facts) -> dict[str, Any]:
        """Those that a baseline depends on."""
        unused = {"entailment", "token_classifier", "judge"}.difference(facts.choices)
        if "judge" in unused:
            unused.add("judge_url")
        return {name: value for name, value in self.settings.items() if name not in unused}

    @property
    def uncached(self) -> Resources:
        """The same models without measurements: for a clock, which takes this anew for each response."""
        return replace(self, folder=None, measurements={})

    @property
    def reader(self) -> Reader:
        return self.once("reader", self._load_reader)

    @property
    def embedder(self) -> Embedder:
        return self.once("embedder", lambda: Embedder.load(device=self.choices.device))

    @property
    def chat(self) -> Chat:
        """The model that judges."""
        if self.choices.judge_url is not None and self.choices.judge is None:
            raise InputError("an endpoint was given and no model: name it with --judge")
        if self.choices.judge is not None:
            return RemoteChat(self.choices.judge, self.choices.judge_url)
        return LocalChat(self.reader)

    def measured(
        self,
        name: str,
        settings: Mapping[str, Any],
        examples: Sequence[Example],
        kind: type[T],
        measure: Callable[[list[Example]], Sequence[T]],
    ) -> list[T]:
        """What `measure` returns for each example, from the cache where it is there.

        `measure` is given examples with one question and the same passages at a time and must not look at
        labels. `settings` say what its values depend on beside the example.
        """
        missing: dict[tuple[str, ...], list[Example]] = {}
        cached: dict[str, T] = {}
        content = json.dumps(dict(settings), sort_keys=True)
        place = f"{name}-{hash_of(content)[:12]}"
        folder = self._measured_folder(place, content)
        for example in examples:
            key = key_of(example)
            if (value := self._read(place, folder, key, kind)) is not None:
                cached[key] = value
            else:
                # Not by their hash, which is the same for texts that differ in white space.
                group = missing.setdefault((example.question, *example.passages), [])
                if all(key_of(one) != key for one in group):
                    group.append(example)
        made, count = self._measure(folder, missing, kind, measure), sum(map(len, missing.values()))
        for key, value in track(made, count, f"measuring: {name}"):
            cached[key] = self.measurements[f"{place}/{key}"] = value
        return [cached[key_of(example)] for example in examples]

    def _measure(
        self,
        folder: Path | None,
        missing: Mapping[tuple[str, ...], list[Example]],
        kind: type[T],
        measure: Callable[[list[Example]], Sequence[T]],
    ) -> Iterator[tuple[str, T]]:
        for group in missing.values():
            for example, value in zip(group, measure(group), strict=True):
                key, content = key_of(example), json.dumps(to_json(value))
                if folder is not None:
                    write_atomically(make_way(folder / f"{key}.json"), content + "\n")
                # Arrays are rounded in the file: what is used is what another run will read.
                yield key, from_json(kind, json.loads(content))

    def _measured_folder(self, place: str, content: str) -> Path | None:
        if self.folder is None:
            return None
        folder = self.folder / "measured" / place
        folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(folder)
        if not (folder / "settings.json").is_file():
            write_atomically(make_way(folder / "settings.json"), content + "\n")
        return folder

    def _read(self, place: str, folder: Path | None, key: str, kind: type[T]) -> T | None:
        """None for a damaged file too: it is measured again."""
        known = f"{place}/{key}"
        if folder is not None and known not in self.measurements:
            try:
                value = parse(read_bytes(folder / f"{key}.json", LARGEST))
                self.measurements[known] = from_json(kind, value)
            except (FileNotFoundError, InputError, *UNREADABLE):
                return None
        return self.measurements.get(known)

    def _load_reader(self) -> Reader:
        from transformers.utils import logging

        from lrp4rag.reader import load_reader

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]
        one = self.choices
        return load_reader(one.reader, device=one.device, dtype=one.dtype, chat_template=one.chat_template)

    @property
    def weights_folder(self) -> Path:
        """Of weights trained here; a temporary one of this process without a `folder`."""
        if self.folder is not None:
            return self.folder / "weights"
        return self.once("weights folder", _temporary)

    def once(self, name: str, load: Callable[[], T], of: str = "") -> T:
        """What `load` returns, loaded once under this name. Where each fold has one (`of`), only the last one
        is held."""
        if name not in self._loaded or self._loaded[name][0] != of:
            self._loaded.pop(name, None)  # before the next one takes as much memory
            self._loaded[name] = of, load()
        found: T = self._loaded[name][1]
        return found


def _temporary() -> Path:
    folder = mkdtemp(prefix="lrp4rag-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
