"""A trunk on two legs that falls, as a body of scenes."""

BOX = {"geometry": {"shape": "box", "size": [0.16, 0.12, 0.08]}}
ROD = {"geometry": {"shape": "capsule", "radius": 0.03, "half_length": 0.1}, "position": [0, 0, -0.1]}
TURNED = [0.9621028, 0.2025480, 0.1519110, 0.1012740]


def walker() -> dict:
    """A trunk on two legs of two links, knees with stops, falling to one side."""
    legs = {}
    for name, side in (("left", 0.05), ("right", -0.05)):
        legs[f"{name}_hip"] = {
            "child": f"{name}_thigh", "parent": "trunk", "axis": [0, 1, 0], "position": [0.0, side, -0.03],
            "value": 0.5, "stiffness": 2.0, "rest": 0.2, "damping": 0.02,
        }  # fmt: skip
        legs[f"{name}_knee"] = {
            "child": f"{name}_shin", "parent": f"{name}_thigh", "axis": [0, 1, 0], "position": [0, 0, -0.2],
            "value": -0.4, "lower": -1.0, "upper": -0.2, "rate": 4.0 if name == "left" else 0.0, "damping": 0.01,
        }  # fmt: skip
    rod = {"mass": 0.3, "shapes": [ROD]}
    return {
        "base": "free", "position": [0, 0, 0.47], "orientation": TURNED, "velocity": [0.6, 0.3, -0.5],
        "angular_velocity": [1.0, 0.5, -0.7], "limits": "hard",
        "links": {"trunk": {"mass": 1.0, "shapes": [BOX]}}
        | {f"{name}_{part}": rod for name in ("left", "right") for part in ("thigh", "shin")},
        "joints": {"trunk": {}, **legs},
    }  # fmt: skip
