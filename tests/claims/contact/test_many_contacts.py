"""Bounds of what contact keeps: patterns, rows of decisions, classes of coefficients, pairs that are tested."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from add import scene_from_dict
from add.compiled.available import packed_or_reason
from add.compiled.pack import PackedSystem
from add.kernels import contact_detection
from add.kernels.contact_pairs import PAIR
from add.linalg.pattern import MOST_PATTERNS, Pattern, PatternCache

ROLLING = {
    "schema": "add-scene/1",
    "time": {"dt": 0.002, "steps": 10_000, "integrator": "bdf1"},
    "gravity": [0, 0, 0],
    "signals": {
        "there": {"type": "sine", "amplitude": [0.2, 0.1, 0], "frequency": 1.1},
        "back": {"type": "sine", "amplitude": [-0.2, 0.13, 0], "frequency": 0.9},
    },
    "bodies": {
        "low": {
            "type": "kinematic", "geometry": {"shape": "box", "size": [1, 1, 0.1]}, "position": [0, 0, -0.098],
            "translation": {"signal": "there"},
        },
        "high": {
            "type": "kinematic", "geometry": {"shape": "box", "size": [1, 1, 0.1]}, "position": [0, 0, 0.098],
            "translation": {"signal": "back"},
        },
        "ball": {
            "type": "soft", "mesh": {"shape": "sphere", "radius": 0.05, "edge": 0.02},
            "material": {"model": "neo-hookean", "young": 3e4, "poisson": 0.3, "density": 900.0, "viscosity": 1.0},
        },
    },
    "contact": {"stiffness": 2e3, "damping": 1.0, "damping_ramp": 0.001, "friction": 0.8, "friction_law": "tanh"},
}  # fmt: skip


def resident() -> float:
    """Return the memory that this process has now [MB]."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def roll(steps: int, measured: int) -> tuple[PatternCache, int, float]:
    """Roll the ball without keeping anything; return the patterns, how many contact sets were met, and the growth."""
    built = scene_from_dict(ROLLING).build()
    simulation, theta = built.simulation, built.theta
    assembler = simulation.assembler()
    assembler.compiled = None  # steps of the terms: those of compiled calls have patterns of their own
    state, _ = simulation.begin(assembler, theta)
    sets, before = set(), 0.0
    for k in range(steps):
        state, record = simulation.stepper.step(assembler, state, theta)
        sets.add(hash(record.decisions[0][:, PAIR].tobytes()))
        if k + 1 == measured:
            before = resident()
    return assembler._patterns, len(sets), resident() - before


def test_a_rolling_ball_keeps_a_bounded_number_of_patterns():
    patterns, sets, _ = roll(400, 100)
    assert len(patterns) <= MOST_PATTERNS < sets


@pytest.mark.slow
def test_a_rolling_ball_needs_no_more_memory():
    patterns, sets, growth = roll(10_000, 1000)
    assert len(patterns) == MOST_PATTERNS and sets > 10 * MOST_PATTERNS
    assert growth < 20.0


def test_an_extended_pattern_is_the_whole_one():
    """The values of a base and of what extends it, scattered on their own, make the matrix of both."""
    rng = np.random.default_rng(3)
    n, compressed = 9, np.array([0, 1, -1, 2, 3, 4, 5, -1, 6, 7, 8])
    steady = [tuple(rng.integers(0, 11, (2, k))) for k in (20, 7)]
    varying = [tuple(rng.integers(0, 11, (2, k))) for k in (5, 0, 3)]
    whole = Pattern.build(n, [*steady, *varying], compressed)
    base = Pattern.build(n, steady, compressed)
    extended = base.extended(varying, compressed)
    assert extended.base is base and len(extended.slots) == 3
    values = [rng.normal(size=rows.size) for rows, _ in (*steady, *varying)]
    expected, first, found = whole.new_data(), base.new_data(), extended.new_data()
    for data, slots, part in ((expected, whole.slots, values), (first, base.slots, values[:2]),
                              (found, extended.slots, values[2:])):  # fmt: skip
        for at, numbers in zip(slots, part, strict=True):
            np.add.at(data, at, numbers)
    found[extended.place] += first[: base.nnz]
    np.testing.assert_array_equal(extended.indices, whole.indices)
    np.testing.assert_array_equal(extended.indptr, whole.indptr)
    np.testing.assert_allclose(found[: whole.nnz], expected[: whole.nnz], rtol=1e-14)


def test_the_oldest_pattern_goes_first():
    built: list[int] = []

    def pattern(k: int) -> Pattern:
        built.append(k)
        return Pattern.build(1, [])

    cache = PatternCache()
    for k in (*range(MOST_PATTERNS), 0, MOST_PATTERNS, 0, 1):
        cache.get(k, lambda k=k: pattern(k))
    assert built == [*range(MOST_PATTERNS), MOST_PATTERNS, 1]
    assert len(cache) == len(cache.copy()) == MOST_PATTERNS


def heap(n: int, steps: int) -> dict:
    """Return a scene of cubes that fall into a box and against each other."""
    rng, side = np.random.default_rng(0), max(round(n ** (1 / 3)), 1)
    bodies = {}
    for k in range(n):
        place = np.array([k % side, k // side % side, k // side**2])
        turn = np.concatenate([[1.0], 0.1 * rng.normal(size=3)])
        bodies[f"cube {k}"] = {
            "type": "rigid",
            "geometry": {"shape": "box", "size": [0.1, 0.1, 0.1]},
            "density": 500.0,
            "position": [*(0.14 * (place[:2] - 0.5 * (side - 1))), 0.09 + 0.14 * float(place[2])],
            "orientation": (turn / np.linalg.norm(turn)).tolist(),
            "velocity": rng.normal(size=3).tolist(),
        }
    wide = 0.07 * side + 0.02
    walls = {"left": [1, 0, 0], "right": [-1, 0, 0], "front": [0, 1, 0], "rear": [0, -1, 0]}
    planes = {name: {"shape": "plane", "point": [-wide * x for x in n], "normal": n} for name, n in walls.items()}
    return {
        "schema": "add-scene/1",
        "time": {"dt": 0.002, "steps": steps, "integrator": "bdf1"},
        "bodies": bodies,
        "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}, **planes},
        "contact": {"stiffness": 5e3, "damping": 5.0, "friction": 0.4, "onset": 0.002, "damping_ramp": 0.002,
                    "friction_law": "tanh"},
    }  # fmt: skip


_WORKER = """
import json, re, sys
from add import scene_from_dict
built = scene_from_dict(json.load(sys.stdin)).build()
run = built.run()
(term,) = built.model.system.deciding
carried = [term.shape_carrier[term.touching_pairs(r.decisions[0])[1]] for r in run.records]
print(json.dumps({
    "steps": run.n_steps,
    "blocks": sum(entry.name.startswith("contact.") for entry in built.model.system.parameters.entries),
    "between": int(sum((c >= 0).sum() for c in carried)),
    # Not getrusage: its maximum is that of the process before it became this one, too.
    "resident": float(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) / 1024.0,
}))
"""


@pytest.mark.parametrize(("n", "steps"), [(64, 10), pytest.param(500, 50, marks=pytest.mark.slow)])
def test_cubes_dropped_in_a_box(n, steps):
    """In a process of its own, whose memory is all that building and running needs."""
    worker = subprocess.run(
        [sys.executable, "-c", _WORKER], input=json.dumps(heap(n, steps)), capture_output=True, text=True, check=True
    )
    found = json.loads(worker.stdout)
    assert found["steps"] == steps and found["between"] > n // 2
    assert found["blocks"] == 4 * 6  # the cubes against five planes and against each other
    assert found["resident"] < 1000.0


def test_many_bodies_find_each_other_as_few_do():
    """The grid of cells gives what testing all pairs gives: runs against shapes, one by one."""
    built = scene_from_dict(heap(125, 1)).build()
    (term,) = built.model.system.deciding
    kin = built.run(n_steps=1).kinematics(1)
    rng = np.random.default_rng(1)
    assert term.arrays.runs.shape[0] * term.n_shapes > contact_detection.MANY
    for spread in (0.05, 0.02):
        q = kin.q.copy()
        for start in np.unique(term.carrier):
            q[start : start + 3] = spread * rng.normal(size=3) * 10.0
        whole = term.decide(type(kin)(q, kin.v, kin.a, kin.t, kin.step), built.theta)
        assert whole.shape[0] > 100
        # Ten bodies at a time are few: their pairs with all shapes are tested one by one.
        parts = []
        for first in range(0, term.carrier.size, 80):
            part = _points(term, slice(first, first + 80))
            assert part.arrays.runs.shape[0] * part.n_shapes <= contact_detection.MANY
            rows = part.decide(type(kin)(q, kin.v, kin.a, kin.t, kin.step), built.theta).copy()
            rows[:, PAIR] += first * term.n_shapes
            parts.append(rows)
        np.testing.assert_array_equal(whole, np.concatenate(parts))


def test_bodies_that_are_nowhere_leave_the_pairs_of_the_others():
    """A trial of Newton's that went astray asks for the pairs of places that are no numbers, and hears no error."""
    built = scene_from_dict(heap(125, 1)).build()
    (term,) = built.model.system.deciding
    kin = built.run(n_steps=1).kinematics(1)
    assert term.arrays.runs.shape[0] * term.n_shapes > contact_detection.MANY
    starts, places = np.unique(term.carrier), np.random.default_rng(1).normal(size=(125, 3))

    def pairs(bodies, value):
        q = kin.q.copy()
        places[bodies] = value
        q[np.add.outer(starts, range(3))] = 0.2 * places
        found = term.decide(type(kin)(q, kin.v, kin.a, kin.t, kin.step), built.theta)[:, PAIR]
        return found[term.carrier[found // term.n_shapes] != starts[0]]

    without = pairs(0, 1e6)
    assert without.size > 100
    for lost in (np.nan, np.inf, -1e300):
        np.testing.assert_array_equal(pairs(0, lost), without)
    pairs(slice(None), np.nan)


def _points(term, part):
    """Return the term of some of the points."""
    fields = ("carrier", "rigid", "arm", "radius", "scale", "group", "centre", "owner", "part", "rim", "corners")
    return replace(term, **{name: getattr(term, name)[part] for name in fields})


@pytest.mark.parametrize(("n", "compiled"), [(30, True), (40, False)])
def test_blocks_of_all_pairs_are_for_few_bodies(n: int, compiled: bool) -> None:
    """A full matrix of a heap is quicker up to some 35 bodies in compiled steps, four times slower for a hundred."""
    bodies = {
        f"cube {k}": {"type": "rigid", "mass": 1.0, "geometry": {"shape": "box", "size": [0.1] * 3},
                      "position": [0.2 * k, 0.0, 0.0]} for k in range(n)
    }  # fmt: skip
    found = scene_from_dict({"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 1}, "bodies": bodies}).build()
    assert isinstance(packed_or_reason(found.simulation.system, False), PackedSystem) == compiled
