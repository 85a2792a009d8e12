"""The paper's evaluation, reproduced: Tables 1 to 5 and Figures 2 to 5 of LRP4RAG (arXiv 2408.15533).

A section (`table2`, `thresholds`, ...) has `measure`, a function of a `Context` that returns a frozen record,
and `show`, which makes figures and tables of that record. `run.reproduce` writes them with a page.
"""
