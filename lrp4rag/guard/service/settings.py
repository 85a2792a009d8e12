"""`Settings`: one YAML file, and environment variables that begin with `LRP4RAG_`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, HttpUrl, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from lrp4rag.guard.policy import Policy, load_policy
from lrp4rag.guard.service.passages import Template
from lrp4rag.util.errors import InputError
from lrp4rag.util.types import Number, Positive, Probability, Whole, first_fault
from lrp4rag.util.yaml_file import line_of, read_yaml

FOREIGN = {"LRP4RAG_QUIET", "LRP4RAG_CACHE", "LRP4RAG_TRACEBACK", "LRP4RAG_TOKEN"}
"""Variables of the environment that are not the server's."""
Label = Annotated[str, Field(min_length=1, max_length=60)]
"""The name of a topic or a model: it is recorded with decisions."""


class Settings(BaseSettings):
    """All that a server is started with. `lrp4rag serve --check` validates it and starts nothing."""

    model_config = SettingsConfigDict(
        env_prefix="LRP4RAG_",
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
    )

    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: Whole = Field(default=8000, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    detector: str = Field(default="default", description="A bundled detector, or the folder of one.")
    reader: str | None = None
    """Hub id or folder of the reader (default: the detector's)."""
    comparer: Path | None = None
    """A file of `lrp4rag calibrate`: a published model in the place of the detector's comparer."""
    device: str | None = Field(default=None, description="cpu, cuda, … (default: CUDA where there is one).")
    dtype: Literal["float32", "bfloat16", "float16", "auto"] = "auto"
    """Precision of the reader."""
    upstream: HttpUrl | None = None
    """OpenAI-compatible server that writes answers: …/v1"""
    upstream_key: SecretStr | None = Field(default=None, description="Its API key.")
    demo: bool = Field(default=False, description="The reader itself writes answers.")
    judge: HttpUrl | None = None
    """OpenAI-compatible server of a second opinion (docs/checks.md#second-opinion-an-llm-judge): …/v1"""
    judge_key: SecretStr | None = Field(default=None, description="Its API key.")
    judge_model: str | None = Field(default=None, description="Its model.")
    judge_share: Probability = 0.05
    """It is asked about all escalated answers, and this share of the others."""
    judge_seconds: Number = Field(default=30.0, gt=0, le=600, description="Its timeout, in seconds.")
    model: str | None = None
    """Model to ask the upstream for (default: the client's)."""
    audit: str = "sqlite:///lrp4rag-audit.db"
    """Path or SQLAlchemy URL of the audit log."""
    audit_key: Path | None = None
    """Ed25519 key that signs checkpoints; made with an empty log."""
    keep_texts: bool = False
    """Keep questions, passages and answers beside the chain."""
    topics: tuple[Label, ...] = Field(
        default=(),
        max_length=100,
        description="Topics that are recorded where a request or its passages name them; any other is "
        "recorded as other (docs/drift.md).",
    )
    generators: tuple[Label, ...] = Field(default=(), max_length=100)
    """Models that are recorded by name where a request names them; any other as other."""
    tokens: dict[str, str] = {}
    """SHA-256 of each client's bearer token, by its name; see `lrp4rag serve --new-token`."""
    reviewers: tuple[str, ...] = ()
    """Names of the tokens that may review (default: all)."""
    open: bool = Field(default=False, description="Serve without tokens.")
    policy: Policy = Policy()
    """What is done with answers: a policy, or the path of its file."""
    seconds: Number = Field(default=30.0, gt=0, le=600)
    """Deadline of judging a response or a sentence, in seconds."""
    upstream_seconds: Number = Field(default=120.0, gt=0, le=3600)
    """Timeout of the upstream's silence, in seconds."""
    answer_seconds: Number = Field(default=600.0, gt=0, le=86400)
    """Deadline of writing and judging an answer, in seconds."""
    most_answers: Positive = Field(default=16, description="Answers of one token that are written at a time.")
    template: str | None = Field(
        default=None,
        max_length=20_000,
        description="How the application writes its prompt: with {context}, where the passages stand, and "
        "{question}; they are cut out of its messages.",
    )
    separator: str = Field(default="\n\n", max_length=100, description="Between the passages of a template.")
    most_waiting: Positive = Field(default=32, description="Jobs in the reader's queue.")
    per_minute: Positive = Field(default=600, description="Requests of one token in a minute.")
    largest_request: Whole = Field(default=2**21, ge=1024, le=2**26, description="Bytes of a request's body.")
    longest_answer: Whole = Field(default=100_000, ge=100, description="Characters of an upstream's answer.")
    replicas: Positive = Field(default=2, description="Readers of a server with --ray.")
    prompt_bytes: Whole = Field(default=2**29, ge=0, description="Size of the cache of prompts, in bytes.")

    @field_validator("audit")
    @classmethod
    def _url(cls, value: str) -> str:
        """Return a URL; a path is that of an SQLite file."""
        url = value if "://" in value else f"sqlite:///{value}"
        try:
            make_url(url)
        except ArgumentError:
            raise ValueError("give a path, or a URL of SQLAlchemy: sqlite:///audit.db") from None
        return url

    @field_validator("policy", mode="before")
    @classmethod
    def _from_file(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return load_policy(Path(value))
        except (InputError, OSError) as error:
            raise ValueError(str(error)) from None

    @model_validator(mode="after")
    def _fits(self) -> Settings:
        for name in self.reviewers:
            if name not in self.tokens:
                raise ValueError(f"reviewers: there is no token '{name}'")
        for name, value in self.tokens.items():
            if len(value) != 64 or set(value) - set("0123456789abcdef"):
                raise ValueError(f"tokens.{name} is no SHA-256: make a token with lrp4rag serve --new-token")
        if not self.tokens and not self.open and self.host not in ("127.0.0.1", "::1", "localhost"):
            raise ValueError("a server that others can reach needs tokens; 'open: true' does without")
        if self.upstream is not None and (self.upstream.username or self.upstream.password):
            raise ValueError("upstream: give its key as upstream_key, not in the address")
        try:
            _ = self.written
        except ValueError as error:
            raise ValueError(f"template: {error}") from None
        if self.demo and self.upstream is not None:
            raise ValueError("demo and upstream: the answers come from one of them")
        return self

    @property
    def written(self) -> Template | None:
        """The template of an application's messages, from which passages are cut out; None without one."""
        return None if self.template is None else Template(self.template, self.separator)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take only the arguments of `load`, which has read the environment."""
        return (init_settings,)

    @classmethod
    def load(cls, path: Path | None, **options: Any) -> Settings:
        """Load settings from `options`, the environment and a YAML file, of which the first that has a
        setting counts. Raises `InputError` naming file, line and field."""
        values = {} if path is None else read_yaml(path)
        chosen = {name: value for name, value in options.items() if value is not None}
        try:
            from_environment = _environment(cls)
        except SettingsError as error:
            hint = 'lists and mappings are JSON there, such as ["leave", "travel"]'
            raise InputError(f"the environment: {error}; {hint}") from None
        try:
            return cls(**_over(_over(values, from_environment), chosen))
        except ValidationError as error:
            message, field = first_fault(error)
            raise InputError(message, path=path, line=line_of(path, field), field=field) from None


def _environment(cls: type[Settings]) -> dict[str, Any]:
    from pydantic_settings import EnvSettingsSource

    names = {f"LRP4RAG_{name.upper()}" for name in cls.model_fields}
    for name in os.environ:
        upper = name.upper()
        if upper.startswith("LRP4RAG_") and upper not in FOREIGN and upper.partition("__")[0] not in names:
            raise InputError("there is no such setting", field=name)
    return EnvSettingsSource(cls)()


def _over(base: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    """Replace values of `base`, nested ones too, by those of `overrides`."""
    merged = dict(base)
    for name, value in overrides.items():
        nested = merged.get(name)
        merged[name] = _over(nested, value) if isinstance(nested, dict) and isinstance(value, dict) else value
    return merged
