"""No constant of a step has a dimension: a scene in other units of mass, length and time moves the same.

Its numbers are taken over by the units that the format says of them. Factors are powers of two, so that what is only
multiplied and added stays equal to the bit.
"""

import re
from typing import Any

import numpy as np
import pytest
from support.places import SCENES

from add import load_scene, scene_from_dict
from add.scene.spec.common import Spec

#: Exponents of mass, length and time of the units that scenes use.
UNITS = {
    "kg": (1, 0, 0), "m": (0, 1, 0), "s": (0, 0, 1), "N": (1, 1, -2), "Pa": (1, -1, -2), "J": (1, 2, -2),
    "W": (1, 2, -3), "rad": (0, 0, 0), "-": (0, 0, 0), "1": (0, 0, 0),
}  # fmt: skip
#: What a kilogram, a metre and a second are in the same units, and in others.
SAME, OTHER = (1.0, 1.0, 1.0), (2.0**-20, 2.0**-10, 2.0**-4)
SECTIONS = ("time", "gravity", "bodies", "obstacles", "couplings", "contact")


def factor(unit: str, factors: tuple[float, float, float]) -> float:
    """What a number in a unit, as "N s/m^2", is multiplied by."""
    exponents, sign = np.zeros(3), 1
    for part in re.findall(r"[A-Za-z]+(?:\^\d)?|/|1|-", unit):
        name, _, power = part.partition("^")
        if name == "/":
            sign = -1
        else:
            exponents += sign * int(power or 1) * np.array(UNITS[name])
    return float(np.prod(np.power(factors, exponents)))


def in_units(node: Any, factors: tuple[float, float, float], unit: str = "-") -> Any:
    """A part of a scene in other units, with those defaults that have one."""
    if isinstance(node, Spec):
        out = {}
        for key, info in type(node).model_fields.items():
            value, has_unit = getattr(node, key), "[" in (info.description or "")
            if key in node.model_fields_set or (has_unit and value is not None and not isinstance(value, Spec)):
                out[info.alias or key] = in_units(value, factors, node.unit_of(key) if has_unit else unit)
        return out
    if isinstance(node, dict):
        return {key: in_units(value, factors, unit) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [in_units(value, factors, unit) for value in node]
    if isinstance(node, bool) or not isinstance(node, int | float) or factor(unit, OTHER) == 1.0:
        return node
    return float(node * factor(unit, factors))


@pytest.mark.parametrize("name", ["hardening_spring", "rope_on_bar", "fading_brake", "cloth_on_block"])
def test_a_scene_moves_the_same_in_other_units(name):
    """Torques and forces are compared with one tolerance: rotations may differ by what it leaves."""
    scene, runs = load_scene(SCENES / f"{name}.json"), []
    for factors in (SAME, OTHER):
        parts = {key: in_units(getattr(scene, key), factors, "m/s^2" if key == "gravity" else "-") for key in SECTIONS}
        parts["time"]["newton"] = {"atol": 1e-13 * factor("N", factors), "rtol": 1e-12}
        built = scene_from_dict({"schema": "add-scene/1", **parts}).build()
        # Numbers that a rule rounds are those of the first run.
        numbers, first = built.numbers, runs[0][0].numbers if runs else built.numbers
        values = numbers.values.copy()
        for entry in first.layout.entries:
            values[entry.start : entry.stop] = first.values[entry.start : entry.stop] * factor(entry.unit, factors)
        run = built.simulation.run(numbers.ties.forward(values), n_steps=min(25, built.simulation.n_steps))
        runs.append((built, run.q, run.v * factor("s", factors)))
    (_, q, v), (_, other_q, other_v) = runs
    length = factor("m", OTHER)
    for one, other in ((q, other_q), (v, other_v)):
        apart = np.minimum(np.abs(other / length - one).max(axis=0), np.abs(other - one).max(axis=0))  # lengths, angles
        assert apart.max() <= 1e-9 * np.abs(one).max()


def test_small_bodies_bounce_as_large_ones():
    """Under impulses, a cube of 10 cm and one of 24 um: what counts as touching is a share of the body."""
    places = []
    for length in (1.0, 2.0**-12):
        cube = {"type": "rigid", "geometry": {"shape": "box", "size": [0.1 * length] * 3}, "density": 800,
                "position": [0, 0, 0.2 * length], "velocity": [0.2 * length**0.5, 0, 0]}  # fmt: skip
        contact = {"friction_law": "impulse", "pairs": [{"between": ["cube", "floor"], "restitution": 0.7}]}
        raw = {"schema": "add-scene/1", "bodies": {"cube": cube}, "contact": contact}
        raw["time"] = {"dt": 0.004 * length**0.5, "steps": 180, "integrator": "bdf1"}
        raw["obstacles"] = {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}}
        places.append(scene_from_dict(raw).build().run().q[:, :3] / length)
    assert np.abs(places[0] - places[1]).max() < 1e-9
