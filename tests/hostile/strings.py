"""What users' data may hold, by accident or on purpose."""

from __future__ import annotations

import unicodedata

CONTROLS = [
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\x1b[2J\x1b[H",
    "\x9b31m",
    "\x00nul",
    "bell\x07",
    "back\x08\x08\x08\x08",
    "over\rwritten",
    "del\x7f",
    "\u202egnp.exe",
    "\u2066isolated\u2069",
    "\u2028line",
    "\x0b\x0c",
]
MARKUP = ["[bold]b[/bold]", "[/INST]", "[/]", "[link=http://x]y[/link]", ":smile:", "\\[x]", "[[[", "]"]
TEXTS = [*CONTROLS, *MARKUP]
MARKDOWN = [
    "<script>alert(1)</script>",
    "</text><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<!-- comment",
    "<https://evil.example>",
    "&lt;script&gt; &#x3c;",
    "[click](javascript:alert(1))",
    "![i](https://evil.example/i.png)",
    "[0.1, 0.2](https://evil.example)",
    "[0.1, 0.2]: https://evil.example",
    "[a]: https://evil.example 'b'",
    "a ][b](c",
    "# heading",
    "\n# heading\n\n<script>",
    "\n\n---\n\n",
    "\n| a | b |\n|---|---|\n",
    "a|b||c",
    "a\\|b",
    "ends in a backslash\\",
    "`code`",
    "`` ` ``",
    "```\nfence",
    "` `` ``` ````",
    "**bold** *italic* __b__ _i_ ~~s~~",
    "* item",
    "- item",
    "+ item",
    "1. item",
    "> quote",
    "    indented",
    "\tindented",
    "===",
    "---",
    "***",
    "$$\\frac{1}{0}$$",
    "{{ name }} {% raw %}",
    "[x] task",
    "[^1] note",
    "a\r\nb\u2028c\u2029d\x85e",
]
FORMULAS = [
    "=1+1",
    '=HYPERLINK("http://evil.example","x")',
    "+1",
    "-1+1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    " =1",
    'a"\n=1',
    "a,=1",
    "\uff1d1",
    "-",
]
MATHEMATICS = ["$", "$$", "$a$", "$\\frac{$", "\\frac{1}{2}", "$x_1", "\\$5", "R_1 ^{", "$$$"]
NAMES = [
    "",
    " ",
    ".",
    "..",
    "../../etc/passwd",
    "a/b",
    "a\\b",
    "/",
    "a\x00b",
    "-rf",
    "CON",
    "a:b",
    "模型",
    "\u200b",
    "_hidden",
    "\udc80",
    "\ufffe\uffff",
    "e\u0301",
    'x d="1.23456',
    "x" * 300,
    "items",
    "all",
]
HOSTILE = list(dict.fromkeys([*MARKDOWN, *FORMULAS, *MATHEMATICS, *NAMES, *TEXTS]))


def obeyed(text: str) -> str:
    """The characters of an output that a terminal would obey, or that reorder the text around them."""
    bidi = {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}
    return "".join(
        char
        for char in text
        if char != "\n" and (unicodedata.category(char) == "Cc" or unicodedata.bidirectional(char) in bidi)
    )


IN_PAGES = [*MARKDOWN[1:3], *MARKDOWN[6:9], *MARKDOWN[13:16], "```\nfence", "> quote", FORMULAS[1]]
IN_PAGES += ["", MATHEMATICS[3], *CONTROLS[:2], "x" * 300, "a\r\nb\u2028c"]
"""One of each kind, for pages that take long to make."""
