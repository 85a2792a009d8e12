"""Files outside of docs/ that its pages link to, and notebooks, as pages of the site.

A page of docs/ links to files of the repository as a reader of the repository needs it: `../ARCHITECTURE.md`.
Such a file PATH becomes `project/PATH` of the site, and what it links to comes along in turn. A notebook
becomes a page, with its figures.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath

import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from nbconvert import MarkdownExporter

ROOT = Path(__file__).parent.parent
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)\s#]+)")
PROJECT = "project/"


def in_repository(uri: str) -> str:
    """The path in the repository of a file of the site."""
    return uri.removeprefix(PROJECT) if uri.startswith(PROJECT) else f"docs/{uri}"


def in_site(path: str) -> str:
    """Where a file of the repository is in the site."""
    return path.removeprefix("docs/") if path.startswith("docs/") else PROJECT + path


def linked(text: str, path: str) -> Iterator[tuple[str, str]]:
    """The links of the page at `path`, each with the file of the repository that it leads to."""
    for link in LINK.findall(text):
        target = normpath(PurePosixPath(path).parent / link)
        if (ROOT / target).is_file():
            yield link, target


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """With every file outside of docs/ that a page links to."""
    open_pages = [file.src_uri for file in files.documentation_pages()]
    while open_pages:
        path = in_repository(open_pages.pop())
        for _, target in linked((ROOT / path).read_text(encoding="utf-8"), path):
            uri = in_site(target)
            if not uri.startswith(PROJECT) or _as_page(uri) in files.src_uris:
                continue
            if target.endswith(".ipynb"):
                for file in notebook(uri, config):
                    files.append(file)
                continue
            files.append(File.generated(config, uri, abs_src_path=str(ROOT / target)))
            if target.endswith(".md"):
                open_pages.append(uri)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """With links that lead to where the files are in the site. Folders have no page: their names stay."""
    uri = page.file.src_uri
    path = in_repository(uri)
    targets = dict(linked(markdown, path))

    def moved(found: re.Match[str]) -> str:
        target = targets.get(found[1])
        return relpath(_as_page(in_site(target)), PurePosixPath(uri).parent) if target else found[1]

    def named(found: re.Match[str]) -> str:
        return found[1] if (ROOT / path).parent.joinpath(found[2]).is_dir() else found[0]

    text = re.sub(r"(?<!!)\[([^\[\]]+)\]\(([^)\s#]+)\)", named, LINK.sub(moved, markdown))
    # The word after the language is for the tests.
    return text.replace("```python skip\n", "```python\n")


def _as_page(uri: str) -> str:
    return re.sub(r"\.ipynb$", ".md", uri)


def notebook(uri: str, config: MkDocsConfig) -> Iterator[File]:
    """The page of a notebook, and its figures."""
    name = PurePosixPath(uri).stem
    exporter = MarkdownExporter()
    content = nbformat.read(ROOT / in_repository(uri), as_version=4)
    text, resources = exporter.from_notebook_node(content, {"unique_key": name, "output_files_dir": name})
    yield File.generated(config, _as_page(uri), content=text)
    for figure, data in resources["outputs"].items():
        yield File.generated(config, str(PurePosixPath(uri).parent / figure), content=data)
