"""The broad phase finds all pairs that are near, and no others."""

import subprocess
import sys

import numpy as np
import pytest
from support.surfaces import joined, sheet

from add.contact.crossings import candidates


def by_hand(primitives, x0, x1, reach):
    """Return the pairs whose boxes come within reach, all against all."""

    def boxes(corners):
        both = np.concatenate([x0[corners], x1[corners]], axis=1)
        return both.min(axis=1), both.max(axis=1)

    def near(a, b, same):
        (low_a, high_a), (low_b, high_b) = boxes(a), boxes(b)
        met = (low_a[:, None] - reach <= high_b[None]).all(axis=2)
        met &= (low_b[None] <= high_a[:, None] + reach).all(axis=2)
        met &= primitives.meets[primitives.body[a[:, 0]][:, None], primitives.body[b[:, 0]][None]]
        for k in range(a.shape[1]):
            for m in range(b.shape[1]):
                met &= a[:, k][:, None] != b[:, m][None]
        return np.argwhere(np.triu(met, 1) if same else met)

    edges = np.flatnonzero(primitives.sharp)
    vf = near(np.arange(len(x0))[:, None], primitives.faces, False)
    return vf, edges[near(primitives.edges[edges], primitives.edges[edges], True)]


CASES = {
    "two sheets": dict(parts=[sheet(9), sheet(7, (0.01, 0.02, 0.05))], reach=0.06),
    "moving": dict(parts=[sheet(9), sheet(7, (0.01, 0.02, 0.5))], reach=0.01, move=(0.1, 0.0, -0.5)),
    "one with itself": dict(parts=[sheet(9, wave=0.3)], itself=[0], reach=0.15),
    "apart": dict(parts=[sheet(6), sheet(6, (0, 0, 0.02)), sheet(6, (0, 0, 0.04))], apart=[(0, 1)], reach=0.1),
    "large and small": dict(parts=[sheet(2), sheet(12, (0.2, 0.1, 0.01))], reach=0.02),
    "blunt edges": dict(parts=[sheet(8), sheet(8, (0.01, 0.0, 0.03))], reach=0.05, blunt=60),
    "far away": dict(parts=[sheet(5), sheet(5, (0, 0, 9.0))], reach=0.1),
}


@pytest.mark.parametrize("name", CASES)
def test_all_pairs_and_no_others(name):
    case = dict(CASES[name])
    reach, move = case.pop("reach"), case.pop("move", (0, 0, 0))
    x0, primitives = joined(**case)
    x1 = x0 + np.where(primitives.body[:, None] == 1, np.asarray(move, dtype=float), 0.0)
    found, expected = candidates(primitives, x0, x1, reach), by_hand(primitives, x0, x1, reach)
    assert (len(expected[0]) == 0) == (name == "far away")
    for mine, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, other)


def test_nothing_meets_nothing():
    x, primitives = joined([sheet(4)])
    assert not any(pairs.size for pairs in candidates(primitives, x, None, 10.0))


def test_the_command_line_starts_without_the_toolkit():
    code = "import sys, add.commands.cli, add.contact.crossings, add.model; sys.exit('ipctk' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
