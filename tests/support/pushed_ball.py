"""A spinning ball that falls onto a floor and is pushed along it: it slips, and its rotation vector changes chart."""

from typing import Any

import numpy as np

from add.scene import scene_from_dict
from add.scene.build.built import BuiltScene

STEPS = 16
#: Inputs of every kind: numbers of bodies and contact, and the rows of the control.
PATHS = ("bodies.ball.mass", "bodies.ball.velocity", "contact.friction", "signals.push.values")


def pushed_ball(**changes: Any) -> BuiltScene:
    """Build the scene; ``changes`` replace whole sections."""
    raw = {
        "schema": "add-scene/1",
        "time": {"dt": 0.004, "steps": STEPS, "integrator": "bdf2"},
        "bodies": {
            "ball": {
                "type": "rigid",
                "geometry": {"shape": "sphere", "radius": 0.1},
                "mass": 0.8,
                "position": [0, 0, 0.105],
                "velocity": [0.4, 0.1, -0.9],
                "angular_velocity": [1, 60, 0.5],
            }
        },
        "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}},
        "contact": {"stiffness": 4000, "friction": 0.3, "friction_law": "linear", "damping": 2, "onset": 0.002},
        "signals": {
            "push": {
                "type": "control",
                "basis": "constant",
                "rows": STEPS,
                "values": [[0.5 * np.sin(k), 0.2, -0.1 * k] for k in range(STEPS)],
            },
            "twist": {"type": "constant", "value": [0.0, 0.01, 0.02]},
        },
        "couplings": {
            "push": {"type": "force", "on": {"body": "ball"}, "force": {"signal": "push"}},
            "twist": {"type": "torque", "body": "ball", "torque": {"signal": "twist"}},
        },
        "markers": {"centre": {"body": "ball", "center_of_mass": True}},
    }
    return scene_from_dict(raw | changes).build()


def own_values(built: BuiltScene, paths: tuple[str, ...] = PATHS) -> dict[str, np.ndarray]:
    """The scene's own values of inputs."""
    return {path: built.numbers.values[built.numbers.place(path)] for path in paths}


def touching_steps(records: Any) -> int:
    """How many steps a contact acted in."""
    return sum(any(np.size(decision) for decision in record.decisions) for record in records)
