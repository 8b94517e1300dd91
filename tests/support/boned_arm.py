"""A soft arm around two bones, links of a tree or free rigid bodies."""

from typing import Any

#: A bone: a box of 0.08 m along x.
BONE = {"shape": "box", "size": [0.08, 0.02, 0.02]}


def boned_arm(
    links: str = "tree", steps: int = 20, integrator: str = "bdf1", element: str = "hex8", **body: Any
) -> dict[str, Any]:
    """Return a scene of an arm whose elbow a servo and whose shoulder a torque bends.

    Parameters
    ----------
    links : "tree" of two hinges, or "free": rigid bodies, the first held still, with a stiff hinge between them
    steps, integrator : of the run
    element : of the tissue
    body : what the tissue has beside
    """
    names = ("arm/upper", "arm/fore") if links == "tree" else ("upper", "fore")
    tissue = {
        "type": "soft",
        "element": element,
        "mesh": {"shape": "box", "size": [0.2, 0.04, 0.04], "divisions": [10, 4, 4]},
        "position": [0.1, 0, 0],
        "material": {"young": 4e4, "poisson": 0.4, "density": 1000, "viscosity": 20},
        "embedded": [{"body": name} for name in names],
    }
    scene: dict[str, Any] = {
        "schema": "add-scene/1",
        "time": {"dt": 0.004, "steps": steps, "integrator": integrator, "newton": {"atol": 1e-11, "rtol": 0}},
        "signals": {
            "angle": {"type": "table", "times": [0, 0.1, 0.5], "values": [0, 0.4, -0.2]},
            "torque": {"type": "table", "times": [0, 0.1, 0.5], "values": [0, 0.2, 0.1]},
        },
        "contact": {"friction_law": "none"},
        "bodies": {"tissue": tissue | body},
    }
    if links == "tree":
        shape = {"geometry": BONE, "position": [0.05, 0, 0]}
        scene["bodies"]["arm"] = {
            "type": "articulated",
            "links": {"upper": {"mass": 0.05, "shapes": [shape]}, "fore": {"mass": 0.04, "shapes": [shape]}},
            "joints": {
                "shoulder": {"child": "upper", "axis": [0, 1, 0], "stiffness": 2},
                "elbow": {"parent": "upper", "child": "fore", "position": [0.1, 0, 0], "axis": [0, 1, 0]},
            },
            "drives": {
                "servo": {
                    "type": "position",
                    "joint": "elbow",
                    "input": {"signal": "angle"},
                    "stiffness": 1,
                    "damping": 0.01,
                },
                "motor": {"joint": "shoulder", "input": {"signal": "torque"}},
            },
        }
        return scene
    for name, x in (("upper", 0.05), ("fore", 0.15)):
        scene["bodies"][name] = {"type": "rigid", "geometry": BONE, "mass": 0.05, "position": [x, 0, 0]}
    scene["couplings"] = {
        "shoulder": {
            "type": "fixed",
            "a": {"body": None, "at": [0, 0, 0]},
            "b": {"body": "upper"},
            "stiffness": 1e4,
            "angular_stiffness": 20,
        },
        "elbow": {
            "type": "hinge",
            "a": {"body": "upper", "at": [0.05, 0, 0]},
            "b": {"body": "fore"},
            "axis": [0, 1, 0],
            "stiffness": 1e4,
            "angular_stiffness": 20,
            "angular_damping": 0.01,
            "motor": {"angle": {"signal": "angle"}, "stiffness": 1},
        },
    }
    return scene
