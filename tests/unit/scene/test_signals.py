"""Signals of the scene format: controls, and values that are numbers or vectors."""

import copy

import numpy as np
import pytest

from add.equations.signals import BSplineSignal
from add.errors import InputError
from add.scene import apply_overrides, scene_from_dict

CONTROL = {"type": "control", "basis": "linear", "rows": 4, "values": [[0, 0, 1.5]]}
SCENE = {
    "schema": "add-scene/1",
    "time": {"dt": 0.01, "steps": 20},
    "bodies": {
        "box": {
            "type": "soft",
            "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "divisions": [1, 1, 1]},
            "material": {"model": "neo-hookean", "young": 1e4, "poisson": 0.3, "density": 100},
            "loads": [{"where": {"all": True}, "force": {"signal": "push"}}],
        }
    },
    "signals": {"push": CONTROL},
}


def scene(**changes):
    return scene_from_dict({**copy.deepcopy(SCENE), "signals": {"push": {**CONTROL, **changes}}})


def load_of(built):
    (load,) = [term for term in built.model.system.terms if type(term).__name__ == "NodalForce"]
    return load


@pytest.mark.parametrize(("basis", "degree"), [("constant", 0), ("linear", 1), ("cubic", 3)])
def test_control(basis, degree, rng):
    values = rng.normal(size=(5, 3)).tolist()
    built = scene(basis=basis, rows=5, start=0.05, end=0.15, values=values).build()
    load = load_of(built)
    assert load.signal == BSplineSignal(degree, 5, 0.05, 0.15)
    assert built.theta[load.rows] == pytest.approx(np.array(values))


def test_one_row_stands_for_all_and_the_end_is_the_run_s():
    built = scene().build()
    load = load_of(built)
    assert (load.signal.start, load.signal.end) == (0.0, 0.2)
    assert built.theta[load.rows].tolist() == [[0, 0, 1.5]] * 4
    # Every row has a path, as a parameter and as an override.
    assert built.numbers.resolve("signals.push.values.3.2")[0].size == 1
    changed = apply_overrides(scene(), {"signals.push.values": [[0, 0, k] for k in range(4)]}).build()
    assert changed.theta[load.rows][:, 2].tolist() == [0, 1, 2, 3]


BAD = {
    "too few values": ({"values": [[0, 0, 0]] * 3}, "signals.push.values", "as many values as 'rows'"),
    "a flat vector": ({"values": [0, 0, 1]}, "signals.push.values", "[[x, y, z]]"),
    "mixed": ({"values": [[0, 0, 1], 2.0, 3.0, 4.0]}, "signals.push.values", "mixed"),
    "not a row": ({"values": ["x"] * 4}, "signals.push.values.0", "a number or [x, y, z]"),
    "short row": ({"values": [[0, 0]] * 4}, "signals.push.values.0", "too few entries"),
    "cubic": ({"basis": "cubic", "rows": 3}, "signals.push.rows", "too few rows for the cubic basis"),
    "linear": ({"rows": 1}, "signals.push.rows", "too few rows for the linear basis"),
    "basis": ({"basis": "quadratic"}, "signals.push.basis", "unknown value"),
    "order": ({"start": 0.1, "end": 0.1}, "signals.push.end", "start before it ends"),
    "late": ({"start": 0.2}, "signals.push.start", "start before it ends"),
    "width": ({"values": [0.5]}, "bodies.box.loads.0.force", "expected a vector"),
    "width of a table": (
        {"type": "table", "times": [0, 1], "values": [0.0, 1.0], "basis": None},
        "bodies.box.loads.0.force",
        "expected a vector",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_signal(case):
    changes, place, text = BAD[case]
    signal = {**CONTROL, **changes}
    if "basis" in changes and changes["basis"] is None:
        signal = {key: value for key, value in signal.items() if key not in ("basis", "rows")}
    with pytest.raises(InputError) as error:
        scene_from_dict({**copy.deepcopy(SCENE), "signals": {"push": signal}}).build()
    assert error.value.place == place
    assert text in str(error.value)


SCALARS = {
    "constant": {"type": "constant", "value": 2.0},
    "sine": {"type": "sine", "amplitude": 1.0, "frequency": 2.0},
    "table": {"type": "table", "times": [0, 1], "values": [0.0, 1.0]},
    "spline": {"type": "spline", "times": [0, 1, 2], "values": [0.0, 1.0, 4]},
    "control": {"type": "control", "basis": "constant", "rows": 7, "values": [0.5]},
}


@pytest.mark.parametrize("kind", SCALARS)
def test_numbers_for_values(kind):
    """A signal of numbers is valid wherever nothing needs a vector of it."""
    spec = scene_from_dict({**copy.deepcopy(SCENE), "signals": {"push": CONTROL, "angle": SCALARS[kind]}})
    assert spec.signals["angle"].width == 1 and spec.signals["push"].width == 3
    if kind == "sine":
        assert spec.signals["angle"].offset == 0.0


def test_sine_of_two_widths():
    signal = {**SCALARS["sine"], "offset": [0, 0, 1]}
    with pytest.raises(InputError, match="mixed"):
        scene_from_dict({**copy.deepcopy(SCENE), "signals": {"push": CONTROL, "angle": signal}})
