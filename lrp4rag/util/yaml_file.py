"""Read a mapping from a YAML file, and find the line of a field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from lrp4rag.util.errors import InputError
from lrp4rag.util.files import read_bytes

LARGEST = 2**20
"""Bytes."""


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a mapping; an empty file is an empty one. Raises `InputError` for a missing file, and with the
    line for invalid YAML and for a key that occurs twice."""
    try:
        text = read_bytes(path, LARGEST)
        _refuse_twice(yaml.compose(text, Loader=yaml.SafeLoader))
        mapping: Any = yaml.safe_load(text)
    except FileNotFoundError:
        raise InputError("no such file", path=path) from None
    except yaml.reader.ReaderError as error:  # it knows no line
        reason = f"{error.reason} (at {error.position}); save the file as UTF-8"
        raise InputError(reason, path=path) from None
    except (yaml.YAMLError, ValueError, AttributeError, TypeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or "this is no YAML"
        raise InputError(str(reason), path=path, line=mark.line + 1 if mark else None) from None
    if mapping is None:
        return {}
    if not isinstance(mapping, dict) or not all(isinstance(name, str) for name in mapping):
        raise InputError("this file holds a mapping, as in 'port: 8000'", path=path)
    return mapping


def _refuse_twice(root: yaml.Node | None) -> None:
    """Refuse a key that occurs twice: YAML would silently take the second."""
    left, done = [root], set[int]()
    while left:
        node = left.pop()
        if node is None or id(node) in done:
            continue
        done.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            left += node.value
        if isinstance(node, yaml.MappingNode):
            names = set[str]()
            for key, value in node.value:
                if isinstance(key, yaml.ScalarNode) and key.value in names:
                    raise yaml.MarkedYAMLError(
                        problem=f"'{key.value}' stands here again", problem_mark=key.start_mark
                    )
                names.add(str(key.value))
                left.append(value)


def line_of(path: Path | None, field: str | None) -> int | None:
    """Return the line of a field; None where the file does not have it."""
    if path is None or not field:
        return None
    node: yaml.Node | None = yaml.compose(read_bytes(path, LARGEST), Loader=yaml.SafeLoader)
    line = None
    for name in field.replace("[", ".").replace("]", "").split("."):
        if isinstance(node, yaml.MappingNode):
            pair = next(((key, value) for key, value in node.value if key.value == name), None)
            if pair is None:
                break
            line, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and name.isdecimal() and int(name) < len(node.value):
            node = node.value[int(name)]
            line = node.start_mark.line + 1
        else:
            break
    return line
