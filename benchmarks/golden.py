"""What the product says to known inputs, recorded before a large change and compared after it.

Only what users see is asked: the command line, the names of `lrp4rag` itself, and the routes of a server; the
inputs are in golden.toml. Times, ids, hashes, versions and paths are left out of what is kept.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shlex
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import click
import httpx

os.environ["OMP_NUM_THREADS"] = "1"  # sums in another order differ in their last digits

Cases = dict[str, Any]
ROOT = Path(__file__).parents[1]
AT_ONCE = 2
"""Commands that run at a time, of one thread each."""
DIGITS = 6
ON_PROBABILITY, ON_OTHERS, SMALL = 1e-4, 1e-3, 1e-2
"""Tolerances: absolute of a probability, relative of any other number, which counts as `SMALL` at least, or,
in a list of numbers, as the largest of them."""
PROBABILITIES = {"probability", "so_far", "threshold", "prevalence"}
LONGEST = 160
"""Characters of a value in a difference."""

INPUTS: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
QUESTION, PASSAGES, ANSWERS, FILES = (INPUTS[name] for name in ("question", "passages", "answers", "files"))
COMMANDS: dict[str, dict[str, str]] = INPUTS["commands"]
JUDGED = ("grounded", "contradicted", "invented", "list")

TIMED = re.compile(r"seconds|.*_seconds|created|at|time|date")
"""Keys whose values are another in each run, where the value does not show it."""
FLEETING = re.compile(
    r"(?:[a-z]+-)?(?:[0-9a-f]{16,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
    r"|\d{4}-\d\d-\d\dT[0-9:.+Z-]+|[A-Za-z0-9+/_-]{43,}={0,2}|^\d+\.\d+\.\d+\S*$"
)
"""Hashes, ids, times, signatures and versions."""


@dataclass
class Work:
    """A folder of inputs, and the log that the section `serve` leaves for `audit`."""

    folder: Path
    audit: Cases = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, text in FILES.items():
            (self.folder / name).write_text(text + "\n" * bool(text))
        rows = _examples("golden.jsonl")
        for one in _examples("contradictions.jsonl")[:6]:
            said = one["passages"][0].split(". ")[-1]
            rows += [one, one | {"id": one["id"] + "-faithful", "response": said, "labels": []}]
        (self.folder / "labelled.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def tell(self, command: str) -> Cases:
        """The exit code of a command, the kind of its error, and its output where that is JSON."""
        words = [word.replace("{folder}", str(self.folder)) for word in shlex.split(command)]
        whole = [sys.executable, "-m", "lrp4rag", *words]
        ended = subprocess.run(
            whole, cwd=ROOT, env=_environment(), capture_output=True, text=True, check=False
        )
        told: Cases = {"exit": ended.returncode}
        if ended.returncode:
            told["error"] = _error(ended.stderr)
        if "--json" in words:
            told["output"] = self.plain(_parsed(ended.stdout))
        return told

    def tell_all(self, section: str, at_once: int = AT_ONCE) -> Cases:
        commands = COMMANDS[section]
        with ThreadPoolExecutor(at_once) as pool:
            return dict(zip(commands, pool.map(self.tell, commands.values()), strict=True))

    def plain(self, value: Any) -> Any:
        """What of a value is the same in each run, numbers rounded; keys of fleeting values are left out."""
        if isinstance(value, dict):
            return {
                key: self.plain(one)
                for key, one in value.items()
                if not TIMED.fullmatch(key) and not (isinstance(one, str) and FLEETING.fullmatch(one))
            }
        if isinstance(value, list | tuple):
            return [self.plain(one) for one in value]
        if isinstance(value, float):
            return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else str(value)
        if isinstance(value, str):
            return FLEETING.sub("…", value.replace(str(self.folder), "FOLDER"))
        return value


def _examples(name: str) -> list[Cases]:
    return [json.loads(line) for line in (ROOT / "examples" / name).read_text(encoding="utf-8").splitlines()]


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT)}


def _error(stderr: str) -> list[str]:
    """Its kind, and where it is: the words of a message may change, not what they point at."""
    kind = re.search(r"^(?:Usage|Error|Traceback)\b", stderr, re.MULTILINE)
    last = stderr.strip().splitlines()[-1:]
    places = r"[\w-]+\.(?:jsonl?|yaml|db)\b|line \d+|field '[^']*'|--[a-z][a-z-]+"
    return [kind[0] if kind else "none", *re.findall(places, "".join(last))]


def _parsed(text: str) -> Any:
    """JSON; of JSON lines an object by their ids, where each has its own."""
    try:
        return json.loads(text)
    except ValueError:
        rows = [json.loads(line) for line in text.splitlines()]
    ids = [str(row.get("id", f"line {number}")) for number, row in enumerate(rows, 1)]
    return dict(zip(ids, rows, strict=True)) if len(set(ids)) == len(ids) else rows


def attribution(work: Work) -> Cases:
    from lrp4rag import Example, attribute, load_reader, relevance_mode

    cases = work.tell_all("attribute")
    reader = load_reader(device="cpu")
    encoded = reader.encode(Example(**json.loads(FILES["short.jsonl"])))
    for composite in ("attnlrp", "cp_lrp", "paper"):
        relevance = attribute(reader, encoded, composite=composite, segments=True, prompt=True)
        arrays = {name: getattr(relevance, name) for name in ("response", "by_segment", "prompt", "logits")}
        with relevance_mode(reader.model, composite) as flow:
            arrays["matrix"] = flow.pull(encoded)
        sums: Cases = {f"sum of {name}": float(array.sum()) for name, array in arrays.items()}
        cases[composite] = work.plain(sums | {name: array.tolist() for name, array in arrays.items()})
    return cases


def library(work: Work) -> Cases:
    import lrp4rag

    detector = lrp4rag.Detector.load(device="cpu")
    cases: Cases = {"names": sorted(lrp4rag.__all__)}
    for name in JUDGED:
        verdict = detector.judge(QUESTION, PASSAGES, ANSWERS[name])
        cases[f"judge, {name}"] = verdict.to_dict() | {"texts": [span.text for span in verdict.spans]}
    plain = detector.judge(QUESTION, PASSAGES, ANSWERS["contradicted"], evidence=False)
    cases["judge, no evidence"] = plain.to_dict()
    cases["judge, another script"] = detector.judge("Кто она?", ["Её зовут Анна."], "Анна.").to_dict()
    examples = [lrp4rag.Example(QUESTION, PASSAGES, ANSWERS[name]) for name in JUDGED]
    cases["judge_many"] = [verdict.to_dict() for verdict in detector.judge_many(examples)]
    return {name: work.plain(case) for name, case in cases.items()}


class Upstream(BaseHTTPRequestHandler):
    """An OpenAI-compatible server that writes the answers, a word an event."""

    def do_GET(self) -> None:
        self._send(
            "application/json", json.dumps({"object": "list", "data": [{"id": one} for one in ANSWERS]})
        )

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = asked["model"]
        if name == "refuses":
            return self._send("application/json", json.dumps({"error": {"message": "it refuses"}}), 500)
        if name == "whole" or not asked.get("stream"):
            choice = {"index": 0, "message": {"role": "assistant", "content": ANSWERS[name]}}
            return self._send(
                "application/json", json.dumps({"choices": [choice | {"finish_reason": "stop"}]})
            )
        words = re.findall(r"\s*\S+\s*", ANSWERS[name])
        choices: list[Cases] = [
            {"index": 0, "delta": {"content": word}, "finish_reason": None} for word in words
        ]
        choices += [{"index": 0, "delta": {}, "finish_reason": "stop"}] * (name != "cut")
        text = "".join(f"data: {json.dumps({'choices': [choice]})}\n\n" for choice in choices)
        return self._send("text/event-stream", text + "data: [DONE]\n\n" * (name != "cut"))

    def _send(self, kind: str, text: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@dataclass
class Server:
    """`lrp4rag serve` at a port of this machine."""

    port: int
    token: str = "golden"

    def ask(self, route: str, body: Any = None, token: str | None = None) -> Cases:
        """The status, the kind and the content of an answer; that of a stream is its events."""
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token or self.token}"}
        method, data = ("GET", None) if body is None else ("POST", json.dumps(body))
        url = f"http://127.0.0.1:{self.port}{route}"
        reply = httpx.request(method, url, content=data, headers=headers, timeout=120)
        kind = reply.headers.get("content-type", "").partition(";")[0]
        content: Any = reply.json() if kind.endswith("json") else reply.text
        if kind == "text/event-stream":
            events = re.findall(r"^data: (.*)$", reply.text, re.MULTILINE)
            content = [json.loads(event) if event.startswith("{") else event for event in events]
        return {"status": reply.status_code, "kind": kind, "content": content}

    def ready(self) -> bool:
        try:
            return bool(self.ask("/readyz")["status"] == 200)
        except httpx.TransportError:
            return False


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """A server that is ready, before an upstream, with its audit log in a folder."""
    upstream = ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    Thread(target=upstream.serve_forever, daemon=True).start()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        server = Server(free.getsockname()[1])
    settings = {
        "port": server.port,
        "upstream": f"http://127.0.0.1:{upstream.server_port}/v1",
        "audit": f"sqlite:///{folder}/audit.db",
        "keep_texts": True,
        "generators": list(ANSWERS),
        "tokens": {"golden": hashlib.sha256(server.token.encode()).hexdigest()},
    }
    (folder / "serve.yaml").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "lrp4rag", "serve", "--config", str(folder / "serve.yaml")]
    process = subprocess.Popen(command, cwd=folder, env=_environment(), stdout=subprocess.DEVNULL)
    try:
        while process.poll() is None and not server.ready():
            time.sleep(0.5)
        yield server
    finally:
        process.terminate()
        process.wait(60)
        upstream.shutdown()


def serve(work: Work) -> Cases:
    """Ask the routes one after the other, then export and verify the log for the section `audit`."""
    asked = {"question": QUESTION, "passages": PASSAGES}
    message = {"messages": [{"role": "user", "content": QUESTION}], "model": "grounded"}
    chat = message | {"lrp4rag": {"passages": PASSAGES}}
    chats = "/v1/chat/completions"
    cases: Cases = {}
    with serving(work.folder) as server:
        for route in ("/healthz", "/readyz", "/v1/models", "/v1/nosuch"):
            cases[route] = server.ask(route)
        for name in JUDGED:
            cases[f"judge, {name}"] = server.ask("/v1/judge", asked | {"response": ANSWERS[name]})
        judged = cases["judge, invented"]["content"]["decision"]["id"]
        batch = [asked | {"response": ANSWERS[name]} for name in ("grounded", "refuses")]
        cases["batch"] = server.ask("/v1/judge/batch", {"requests": batch})
        cases["retrieval"] = server.ask("/v1/retrieval/check", asked)
        for name in ANSWERS:
            for way, stream in (("whole", False), ("streamed", True)):
                cases[f"chat, {name}, {way}"] = server.ask(chats, chat | {"model": name, "stream": stream})
        cases["chat, documents"] = server.ask(chats, message | {"documents": PASSAGES})
        cases["chat, no passages"] = server.ask(chats, message)
        cases["chat, two answers"] = server.ask(chats, chat | {"n": 2})
        cases["no object"] = server.ask("/v1/judge", [])
        cases["another type"] = server.ask("/v1/judge", asked | {"response": 1})
        cases["another's token"] = server.ask("/v1/judge", asked, token="nosuch")
        cases["decision"] = server.ask(f"/v1/decisions/{judged}")
        cases["decisions"] = server.ask("/v1/decisions?limit=3")
        cases["feedback"] = server.ask("/v1/feedback", {"decision": judged, "said": "hallucinated"})
        cases["reviews"] = server.ask("/v1/reviews")
        metrics = server.ask("/metrics")["content"]
        cases["metrics"] = re.findall(r"^# TYPE (lrp4rag\S+ \S+)", metrics, re.MULTILINE)
        paths = server.ask("/openapi.json")["content"]["paths"]
        cases["routes"] = [f"{method} {path}" for path, of in paths.items() for method in of]
    for name in ("metrics", "routes"):
        cases[name].sort()
    database = "--database {folder}/audit.db"
    work.audit["verify"] = work.tell(f"audit verify {database} --json")
    work.audit["export"] = work.tell(f"audit export {{folder}}/log.jsonl {database}")
    lines = (work.folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    work.audit |= {f"entry {k}": work.plain(json.loads(line)) for k, line in enumerate(lines, 1)}
    return {name: work.plain(case) for name, case in cases.items()}


def audit(work: Work) -> Cases:
    if not work.audit:
        serve(work)
    return work.audit


SECTIONS: dict[str, Callable[[Work], Cases]] = {
    "errors": lambda work: work.tell_all("errors"),
    "analyse": lambda work: work.tell_all("analyse"),
    "route": lambda work: work.tell_all("route"),
    "attribute": attribution,
    "library": library,
    "generate": lambda work: work.tell_all("generate"),
    "evaluate": lambda work: work.tell_all("evaluate"),
    "train": lambda work: work.tell_all("train", at_once=1),
    "serve": serve,
    "audit": audit,
}


def differences(path: str, before: Any, after: Any, largest: float = SMALL) -> Iterator[str]:
    """A line for each place where two values differ by more than the tolerance."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before | after:
            yield from differences(f"{path}.{key}", before.get(key, "(absent)"), after.get(key, "(absent)"))
    elif isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            yield f"{path}: {len(before)} items -> {len(after)}"
        largest = max([SMALL, *(abs(one) for one in before if isinstance(one, int | float))])
        for place, (old, new) in enumerate(zip(before, after, strict=False)):
            yield from differences(f"{path}[{place}]", old, new, largest)
    elif not _equal(path, before, after, largest):
        old, new = (json.dumps(one, ensure_ascii=False)[:LONGEST] for one in (before, after))
        yield f"{path}: {old} -> {new}"


def _equal(path: str, before: Any, after: Any, largest: float) -> bool:
    floating = isinstance(before, float) or isinstance(after, float)
    if not floating or not isinstance(before, int | float) or not isinstance(after, int | float):
        return type(before) is type(after) and bool(before == after)
    if path.rpartition(".")[2] in PROBABILITIES:
        return abs(before - after) <= ON_PROBABILITY
    return abs(before - after) <= ON_OTHERS * max(abs(before), abs(after), largest)


def write(path: Path, kept: dict[str, Cases]) -> None:
    """A line for each case."""
    sections = []
    for name, cases in kept.items():
        lines = [
            f"{json.dumps(case)}: {json.dumps(of, ensure_ascii=False, separators=(',', ':'))}"
            for case, of in cases.items()
        ]
        sections.append(f"{json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n}")
    path.write_text("{\n" + ",\n".join(sections) + "\n}\n", encoding="utf-8")


@click.command()
@click.argument("what", type=click.Choice(["record", "compare"]))
@click.option("--section", "names", multiple=True, type=click.Choice(list(SECTIONS)), help="Default: all.")
@click.option("--file", "path", default=Path(__file__).with_suffix(".json"), type=click.Path(path_type=Path))
def main(what: str, names: tuple[str, ...], path: Path) -> None:
    """Record what the product says to known inputs, or print where it differs from a record (exit code 1)."""
    kept: dict[str, Cases] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    found: list[str] = []
    with TemporaryDirectory() as folder:
        work = Work(Path(folder))
        for name in names or SECTIONS:
            start = time.monotonic()
            try:
                cases = SECTIONS[name](work)
            except Exception as error:
                if what == "record":
                    raise
                cases = {"failed": repr(error)}
            click.echo(f"{name}: {len(cases)} cases, {time.monotonic() - start:.0f} s", err=True)
            if what == "record":
                kept[name] = cases
                write(path, kept)
                continue
            for case in kept[name] | cases:
                both = (of.get(case, "(absent)") for of in (kept[name], cases))
                found += [f"{name} / {case} / {line}" for line in differences("$", *both)]
    if what == "compare":
        click.echo("\n".join(found) or "no difference")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
