"""`Reader`: a loaded model and tokenizer, ready to replay responses, with its identity."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from transformers import AutoTokenizer, GenerationConfig, TextStreamer

from lrp4rag.example import Example
from lrp4rag.reader.encoding import (
    Encoded,
    Truncation,
    encode_message,
    encode_prompt,
    fit,
    require_template,
    require_truncation,
)
from lrp4rag.reader.identity import ReaderIdentity
from lrp4rag.reader.lock import lock_of, locked
from lrp4rag.reader.placement import AUTO, input_device, room_for_weights
from lrp4rag.reader.weights import (
    DEFAULT_READER,
    label_of,
    load_whole,
    pretrained,
    quantisation_words,
    reason,
    require_kernels,
    resolve,
    weights_hash,
)
from lrp4rag.reader.words import NONE, NoModel, Words, identity_of_none
from lrp4rag.util.errors import InputError, LRP4RAGError
from lrp4rag.util.hashes import json_hash
from lrp4rag.util.text import one_line
from lrp4rag.util.types import require_kind, require_whole

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}

# Settings that no weight's shape shows. Named one by one: a whole configuration changes with every
# version of transformers.
_COMPUTATION = (
    "model_type",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "hidden_act",
    "rms_norm_eps",
    "rope_parameters",
    "sliding_window",
    "layer_types",
    "attn_logit_softcapping",
    "final_logit_softcapping",
    "query_pre_attn_scalar",
)

# Encoded by every tokenizer once: two tokenizers that agree on it and on the vocabulary are one.
_PROBE = "The year 1984, naïve café №5, 東京タワー 🗼, don't  \n\n\tfoo_bar(x) == 3.14e-2; İstanbul"


@dataclass(frozen=True)
class Reader:
    """A causal language model with its tokenizer; `encode` shows it an example."""

    model: Any
    tokenizer: Any
    identity: ReaderIdentity

    @property
    def window(self) -> int | None:
        """The longest prompt plus response, in tokens."""
        return getattr(self.model.config, "max_position_embeddings", None)

    @property
    def has_model(self) -> bool:
        """Whether it can be asked for more than words."""
        return not isinstance(self.model, NoModel)

    @property
    def lock(self) -> threading.RLock:
        """The model's lock: hold it to call the model beside this package from several threads."""
        return lock_of(self.model)

    @cached_property
    def _longest_token(self) -> int:
        """The longest token in characters, one or more for a byte of text."""
        return max(map(len, self.tokenizer.get_vocab()))

    def encode(self, example: Example, *, truncation: Truncation = "error") -> Encoded:
        """See `lrp4rag.reader.encoding.encode`; raises `InputError` without a response."""
        require_kind(example, "example", Example)
        require_truncation(truncation)
        if example.response is None:
            raise InputError("there is no response to analyse", field="response")
        self._refuse_hopeless(example, truncation)
        prompt = self.whole_prompt(example)
        return self.with_response(prompt, example.response, truncation=truncation)

    def whole_prompt(self, example: Example) -> Encoded:
        """Encode the example's prompt without a response, at any length: see `with_response`."""
        return encode_prompt(example, self.tokenizer, chat_template=self.identity.chat_template)

    def with_response(self, prompt: Encoded, response: str, *, truncation: Truncation = "error") -> Encoded:
        """Add a response to a whole prompt, truncated as in `encode`; raises `InputError` if they exceed the
        window."""
        return self._fit(prompt.with_response(response, self.tokenizer), self.window, truncation)

    def encode_prompt(
        self, example: Example, *, max_new_tokens: int = 256, truncation: Truncation = "error"
    ) -> Encoded:
        """Encode the example's prompt without a response, to generate one.

        A chosen truncation makes room for `max_new_tokens`. Raises `InputError` for a prompt that leaves
        no room for a response.
        """
        require_whole(max_new_tokens, "max_new_tokens", 1)
        require_truncation(truncation)
        self._refuse_hopeless(example, truncation)
        prompt = self.whole_prompt(replace(example, response=None, labels=None))
        return self.fit_prompt(prompt, max_new_tokens=max_new_tokens, truncation=truncation)

    def fit_prompt(self, prompt: Encoded, *, max_new_tokens: int, truncation: Truncation) -> Encoded:
        """Truncate a whole prompt as `encode_prompt` does."""
        window = self.window
        if window is not None and truncation == "passages":
            window = max(window - max_new_tokens, 1)
        encoded = self._fit(prompt, window, truncation)
        if self.room(encoded, max_new_tokens) < 1:
            raise InputError(
                f"a prompt of {len(encoded.prompt_ids)} tokens leaves no room for a response in the "
                f"reader's window of {self.window}"
            )
        return encoded

    def encode_message(self, text: str) -> list[int]:
        """Encode a user's message, framed as prompts are."""
        return encode_message(text, self.tokenizer, chat_template=self.identity.chat_template)

    def room(self, encoded: Encoded, max_new_tokens: int) -> int:
        """Return how many of `max_new_tokens` the window leaves for a response to this prompt."""
        if self.window is None:
            return max_new_tokens
        return min(max_new_tokens, self.window - len(encoded.prompt_ids))

    @locked
    @torch.no_grad()
    def generate(
        self,
        example: Example,
        *,
        max_new_tokens: int = 256,
        truncation: Truncation = "error",
        follow: Callable[[str], None] | None = None,
    ) -> Encoded:
        """Generate the reader's greedy response and return it encoded with the prompt; `follow` is called
        with its text word by word, with the white space around it.

        The response ends at the window; see `encode_prompt`.
        """
        encoded = self.encode_prompt(example, max_new_tokens=max_new_tokens, truncation=truncation)
        ids = torch.tensor([encoded.prompt_ids], device=input_device(self.model))
        output = self.model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=self.room(encoded, max_new_tokens),
            do_sample=False,
            pad_token_id=self.tokenizer.pad_token_id or self.tokenizer.eos_token_id,
            streamer=None if follow is None else _following(self.tokenizer, follow),
        )
        response = self.tokenizer.decode(output[0, ids.shape[1] :], skip_special_tokens=True).strip()
        if not response:
            raise LRP4RAGError("the reader gave an empty response; give one, or another reader")
        return encoded.with_response(response, self.tokenizer)

    def _fit(self, encoded: Encoded, window: int | None, truncation: Truncation) -> Encoded:
        encoded = fit(encoded, window, truncation)
        if not self.has_model:
            return encoded
        rows = self.model.get_input_embeddings().weight.shape[0]
        largest = max((*encoded.prompt_ids, *encoded.response_ids), default=0)
        if largest >= rows:
            raise InputError(
                f"the reader's tokenizer gives token {largest}, and its model has {rows} embeddings: they do "
                "not belong together"
            )
        return encoded

    def _refuse_hopeless(self, example: Example, truncation: Truncation) -> None:
        """Refuse text that cannot fit whatever its tokens are, before megabytes are cut into tokens."""
        if self.window is None or truncation != "error":
            return
        count, most = len(example.prompt) + len(example.response or ""), self.window * self._longest_token
        if count > most:
            raise InputError(
                f"prompt and response have {count:,} characters, more than the reader's window of "
                f"{self.window} tokens holds ({most:,} at most); shorten them"
            )


def _following(tokenizer: Any, follow: Callable[[str], None]) -> TextStreamer:
    """Return a streamer that calls `follow` with whole words."""

    class Following(TextStreamer):
        def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
            if text:
                follow(text)

    return Following(tokenizer, skip_prompt=True, skip_special_tokens=True)


def load_reader(
    name: str = DEFAULT_READER,
    *,
    device: str | None = None,
    dtype: str = "float32",
    chat_template: bool | None = None,
    max_memory: int | None = None,
) -> Reader:
    """Load a reader: the default, a hub id, a local folder or a .gguf file. No remote code is run. The reader
    "none" splits texts into words, for a detector that compares text only.

    Weights that torchao or bitsandbytes quantised stay so; relevance can then be pushed, not pulled.

    `device` defaults to CUDA where there is one; "auto" spreads the layers over all GPUs, main memory and,
    for what does not fit there, the model's files, from which they are loaded for each call. `max_memory`
    (bytes, of each GPU, or of the process without one) then bounds the memory of the weights.
    `chat_template` None uses the chat template where there is one (see `Reader`). Raises `InputError` for an
    unknown model, device or dtype, and for a chat template that cannot be used; an architecture without
    relevance rules is refused later, by `relevance_mode`.
    """
    if name == NONE:
        return Reader(NoModel(), Words(), identity_of_none())
    device = check_device(device)
    if max_memory is not None:
        require_whole(max_memory, "max_memory", 1)
    if dtype == "auto":
        dtype = fastest_dtype(device)
    if dtype not in DTYPES:
        raise InputError(f"unknown dtype '{dtype}'; choose from {', '.join(DTYPES)}, auto")
    folder = resolve(name)
    try:
        require_kernels(folder)
        tokenizer = pretrained(AutoTokenizer, folder)
        use_template = bool(tokenizer.chat_template) if chat_template is None else chat_template
        if use_template:  # else each example would fail by itself
            require_template(tokenizer)
        spread = {"device_map": AUTO, "max_memory": room_for_weights(max_memory)} if device == AUTO else {}
        model = load_whole(str(folder), dtype=DTYPES[dtype], use_safetensors=True, **spread)
    except Exception as error:  # transformers raises many kinds for folders it cannot read
        raise InputError(f"cannot load reader '{name}': {reason(error)}") from error
    # transformers would follow any setting of the file, such as a million beams: responses are greedy here.
    model.generation_config = GenerationConfig(eos_token_id=_end_ids(model, name))  # type: ignore[no-untyped-call]
    model.config.return_dict = True
    if not tokenizer.is_fast:
        raise InputError(f"the tokenizer of '{name}' gives no character offsets (it is not a fast one)")
    identity = ReaderIdentity(
        name=label_of(name),
        weights=weights_hash(folder),
        config=config_hash(model.config),
        tokenizer=tokenizer_hash(tokenizer),
        template=_digest(tokenizer.chat_template) if use_template else "",
        chat_template=use_template,
        dtype=dtype,
        quantised=quantisation_words(model.config),
    )
    return Reader((model if device == AUTO else model.to(device)).eval(), tokenizer, identity)


def reader_weights(name: str) -> str:
    """Return the hash of weights in the identity of a reader, by a name as `load_reader` takes it, without
    loading it. Raises `InputError` for the name of none."""
    return identity_of_none().weights if name == NONE else weights_hash(resolve(name))


def _end_ids(model: Any, name: str) -> list[int] | None:
    """Return the tokens that end a response, from the model's file; raises `InputError` for values that are
    not tokens. A token outside the vocabulary ends nothing."""
    value = getattr(model.generation_config, "eos_token_id", None)
    if value is None:
        return None
    ids = value if isinstance(value, list) else [value]
    if not all(type(id) is int for id in ids):
        raise InputError(f"cannot load reader '{name}': eos_token_id {one_line(str(value), 60)} is no token")
    rows = model.get_input_embeddings().weight.shape[0]
    return [id for id in ids if 0 <= id < rows]


def fastest_dtype(device: str) -> str:
    """Return bfloat16 where the device computes in it faster than in float32, and float32 elsewhere.

    A CPU does with AMX or AVX-512 instructions for it; on others its arithmetic is emulated.
    """
    if device.startswith("cuda") or (device == AUTO and torch.cuda.is_available()):
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float16"
    able: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return "bfloat16" if any(able.get(name) for name in ("amx_bf16", "avx512_bf16")) else "float32"


def check_device(device: str | None) -> str:
    if device is None:
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device == AUTO:
        return AUTO
    try:
        kind = torch.device(device).type
    except RuntimeError as error:
        raise InputError(f"unknown device '{device}'; use cpu, cuda, cuda:K or auto") from error
    if kind not in ("cpu", "cuda", "mps"):
        raise InputError(f"unknown device '{device}'; use cpu, cuda, cuda:K or auto")
    if kind == "cuda" and not torch.cuda.is_available():
        raise InputError("no CUDA device is available; use device cpu")
    if kind == "mps" and not torch.backends.mps.is_available():
        raise InputError("no MPS device is available; use device cpu")
    return device


def config_hash(config: Any) -> str:
    """Hash the settings that change what the same weights compute."""
    return _digest({name: getattr(config, name, None) for name in _COMPUTATION})


def tokenizer_hash(tokenizer: Any) -> str:
    """Hash vocabulary, special tokens and a probe text's tokens: behaviour, not file format."""
    return _digest(
        [
            sorted(tokenizer.get_vocab().items()),
            sorted((name, str(token)) for name, token in tokenizer.special_tokens_map.items()),
            tokenizer(_PROBE)["input_ids"],
        ]
    )


def _digest(value: object) -> str:
    return json_hash(value, sort_keys=True)
