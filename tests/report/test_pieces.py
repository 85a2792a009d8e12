from __future__ import annotations

import numpy as np

from lrp4rag.report.pieces import Piece, cut, sum_over


def test_every_character_is_in_one_piece():
    pieces = cut([(0, 0), (1, 3), (3, 4), (3, 4), (6, 9), (8, 10)], 12)
    assert pieces == [
        Piece(0, 1, ()),
        Piece(1, 3, (1,)),
        Piece(3, 4, (2, 3)),
        Piece(4, 6, ()),
        Piece(6, 10, (4, 5)),
        Piece(10, 12, ()),
    ]


def test_relevance_of_tokens_that_share_characters_is_summed():
    pieces = cut([(0, 0), (1, 3), (3, 4), (3, 4), (6, 9), (8, 10)], 12)
    rows = np.array([[100, 1, 2, 3, 4, 5], [0, -1, 0, 7, 0, 1]], dtype=np.float32)
    np.testing.assert_array_equal(sum_over(rows, pieces), [[1, 5, 9], [-1, 7, 1]])


def test_a_text_without_tokens():
    assert cut([], 3) == [Piece(0, 3, ())]
    assert sum_over(np.zeros((2, 0), np.float32), cut([], 3)).shape == (2, 0)
