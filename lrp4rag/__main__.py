"""`python -m lrp4rag` is `lrp4rag`."""

from lrp4rag.cli import main

main(prog_name="lrp4rag")
