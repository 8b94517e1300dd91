"""Which boxes overlap: against all pairs, also where boxes have no size or the grid would have too many cells."""

import numpy as np
import pytest

from add.kernels.boxes import Boxes, overlapping


@pytest.mark.parametrize("size", [0.0, 1e-15, 1e-3, 0.3])
def test_pairs_are_those_of_all_against_all(size: float, rng: np.random.Generator) -> None:
    low = rng.uniform(0.0, 1.0, (60, 3))
    low[40:] = low[20:40]  # where others are, so that there are pairs whatever the size
    high = low + size
    low[0], high[0] = (0.0, 0.0, 0.5), (1.0, 1.0, 0.501)  # a plate, compared with all where cells are small
    boxes = Boxes(low, high, np.arange(60)[:, None], np.arange(60) % 2)
    met = overlapping(boxes, boxes, np.ones((2, 2), dtype=bool), True)
    apart = (boxes.low[:, None] > boxes.high[None]).any(axis=2)
    expected = np.argwhere(np.triu(~(apart | apart.T), 1))
    assert len(expected) >= 20 and np.array_equal(met, expected)
