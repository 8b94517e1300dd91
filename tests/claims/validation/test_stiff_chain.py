"""The double pendulum on stiff hinges between free bodies tends to the tree of two links like 1/k."""

import json
from typing import Any

import numpy as np
from support.places import SCENES

from add.scene import scene_from_dict

#: Steps at which the arms' directions are compared, from 0.04 to 0.1 s: hinges that are let go swing before.
AT = range(200, 501, 10)


def directions(raw: dict[str, Any]) -> np.ndarray:
    """Return the directions of both arms (31, 2, 3) of a swing without friction."""
    for key in ("recording", "objective", "parameters", "check"):
        raw.pop(key)
    raw["time"] = {"dt": 2e-4, "steps": AT[-1], "integrator": "bdf2"}
    built = scene_from_dict(raw).build()
    run = built.run()
    return np.array([built.markers.points(run.kinematics(k), built.theta)[0] for k in AT])


def test_stiff_hinges_tend_to_the_tree() -> None:
    tree = json.loads((SCENES / "double_pendulum_tree.json").read_text(encoding="utf-8"))
    for joint in tree["bodies"]["pendulum"]["joints"].values():
        for key in ("damping", "dry_friction", "slip_speed"):
            joint.pop(key)
    wanted, errors, factors = directions(tree), [], (1.0, 3.0, 10.0)
    for factor in factors:
        stiff = json.loads((SCENES / "double_pendulum.json").read_text(encoding="utf-8"))
        for hinge in stiff["couplings"].values():
            hinge.pop("friction")
            hinge["stiffness"], hinge["angular_stiffness"] = 2e4 * factor, 100.0 * factor
        errors.append(float(np.sqrt(np.mean((directions(stiff) - wanted) ** 2))))
    print("errors", errors)
    assert errors[0] > 5e-4
    np.testing.assert_allclose(np.array(factors) * errors, errors[0], rtol=0.12)
