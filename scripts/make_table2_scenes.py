"""Write the scenes of ADD (Table 2, Fig. 14c) whose controls have a row a step: python scripts/make_table2_scenes.py.

The rows are only where the optimisation starts: straight pulls, arcs, a trot on the spot. Without an argument the files
in scenes/ are written anew; they come out the same each time.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from add.typing import FloatArray

DT = 1.0 / 60.0
WIDTH = 118

Json = Any


def text(item: Json, indent: int = 0) -> str:
    """Return JSON of which whatever fits stands on one line, and numbers and rows fill theirs."""
    line = json.dumps(item, ensure_ascii=False)
    if len(line) + indent <= WIDTH or not isinstance(item, dict | list):
        return line
    pad = " " * (indent + 2)
    if isinstance(item, dict):
        entries = [f"{pad}{json.dumps(key)}: {text(value, indent + 2)}" for key, value in item.items()]
        return "{\n" + ",\n".join(entries) + "\n" + " " * indent + "}"
    if not all(isinstance(entry, int | float | list) for entry in item):
        return "[\n" + ",\n".join(pad + text(entry, indent + 2) for entry in item) + "\n" + " " * indent + "]"
    lines = [""]
    for entry in map(json.dumps, item):
        if lines[-1] and len(lines[-1]) + len(entry) + indent + 4 > WIDTH:
            lines.append("")
        lines[-1] += f", {entry}" if lines[-1] else entry
    return "[\n" + ",\n".join(pad + entry for entry in lines) + "\n" + " " * indent + "]"


def control(rows: FloatArray) -> Json:
    """Return a control with a row a step, (n,) numbers or (n, 3) vectors."""
    values = (np.round(rows, 5) + 0.0).tolist()
    return {"type": "control", "basis": "constant", "rows": len(values), "values": values}


def times(n: int) -> FloatArray:
    """Return the ends of n steps [s]."""
    return np.arange(1, n + 1) * DT


def ease(s: FloatArray) -> FloatArray:
    """Return a smooth rise from 0 at s = 0 to 1 at s = 1."""
    s = np.clip(s, 0.0, 1.0)
    return s * s * (3.0 - 2.0 * s)


def along_y(angle: float) -> list[float]:
    """Return the quaternion of a turn about y [rad]."""
    return [round(float(np.cos(0.5 * angle)), 9), 0, round(float(np.sin(0.5 * angle)), 9), 0]


def scene(name: str, description: str, n: int, integrator: str = "bdf2") -> dict[str, Json]:
    """Return what all scenes begin with."""
    return {
        "$schema": "../docs/add-scene-1.schema.json",
        "schema": "add-scene/1",
        "name": name,
        "description": description,
        "time": {"dt": DT, "steps": n, "integrator": integrator},
    }


FLOOR = {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}}


def smoothness(weight: float, *signals: str) -> list[Json]:
    """Return the regulariser of Table 2, beta."""
    return [{"type": "smoothness", "signal": name, "weight": weight} for name in signals]


def parameters(scale: float, *signals: str) -> list[Json]:
    """Return every row of the signals as a parameter."""
    return [{"path": f"signals.{name}.values", "scale": scale} for name in signals]


def strings_cube() -> Json:
    """Return row 1: a cube dragged by strings."""
    n, edge, mass, k_n = 60, 0.1, 0.1, 200.0
    height = round(0.5 * edge - mass * 9.81 / (4.0 * k_n), 6)
    pull = np.outer(0.3 * np.arange(1, n + 1) / n, [1.0, 0.0, 0.0])
    sides = {"left": 1, "right": -1}
    return scene(
        "A cube dragged by strings (ADD, Table 2)",
        "Two strings drag a cube over a floor. How their ends have to move, step by step, so that the cube ends 25 cm "
        "further on, 10 cm to the left and turned by 90 degrees; the start pulls straight on.",
        n,
    ) | {
        "bodies": {
            "cube": {
                "type": "rigid",
                "geometry": {"shape": "box", "size": [edge] * 3},
                "mass": mass,
                "position": [0, 0, height],
            }
        }
        | {
            f"{side} handle": {
                "type": "mass-spring",
                "mesh": {"points": [[0, 0, 0]]},
                "position": [0.2, 0.05 * sign, 0.05],
                "collision": False,
                "pins": [{"where": {"all": True}, "motion": {"signal": side}}],
            }
            for side, sign in sides.items()
        },
        "signals": {side: control(pull) for side in sides},
        "obstacles": FLOOR,
        "couplings": {
            f"{side} string": {
                "type": "cable",
                "a": {"body": "cube", "at": [0.05, 0.05 * sign, 0]},
                "b": {"body": f"{side} handle"},
                "length": 0.1500050101696607,  # from where the handles stand before the first row of their motion
                "stiffness": 5,
            }
            for side, sign in sides.items()
        },
        "contact": {"stiffness": k_n, "friction": 0.5, "damping": 0.001, "damping_ramp": 0.0005},
        "markers": {
            "cube": {"body": "cube", "center_of_mass": True},
            "front": {"body": "cube", "direction": [1, 0, 0]},
        },
        "objective": [
            {
                "type": "pose",
                "body": "cube",
                "translation": [0.25, 0.1, height],
                "orientation": [0.707106781, 0, 0, 0.707106781],
                "time": "end",
            },
            *smoothness(0.01, *sides),
        ],
        "parameters": parameters(0.1, *sides),
        "optimizer": {"method": "gauss-newton", "max_evaluations": 25, "objective_tolerance": 1e-6},
        "check": {"steps": 12},
        "expect": {
            "simulate": {"newton.fallbacks": {"max": 0}, "contact.touching": {"min": 200}},
            "optimize": {
                "objective.end": {"max": 1e-5},
                "markers.cube.final": {"value": [0.25, 0.1, height], "abs_tol": 0.002},
                "markers.front.final": {"value": [0, 1, 0], "abs_tol": 0.02},
                "newton.fallbacks": {"max": 0},
            },
        },
    }


def sheet_flip() -> Json:
    """Return row 2: a mass-spring sheet flipped over and back, and moved to the right."""
    n, edge, away, right = 120, 0.4, 0.45, 0.2
    t = times(n)
    # Over, to the right, and back over.
    angle = np.pi * np.where(t <= 1.2, ease(t / 0.85), ease(1.0 - (t - 1.2) / 0.7))
    arc = edge * np.stack([1.0 - np.cos(angle), np.zeros(n), np.sin(angle)], axis=1)
    arc[:, 0] += right * ease((t - 1.0) / 0.35)
    corners = {"left": 4, "right": 0}
    poses = [
        {"translation": [away, 0, 0], "orientation": along_y(np.pi), "window": [0.95, 1]},
        {"translation": [right, 0, 0], "window": [1.95, 2]},
    ]
    return scene(
        "A sheet flipped over and back (ADD, Table 2)",
        "Two corners of a mass-spring sheet are led so that it lies upside down 45 cm further on after one second, and "
        "as in the beginning but 20 cm to the right after two; the start leads them over a half circle, 20 cm to the "
        "right, and back over a half circle.",
        n,
    ) | {
        "bodies": {
            "sheet": {
                "type": "mass-spring",
                "mesh": {"shape": "sheet", "size": [edge, edge], "divisions": [4, 4]},
                "mass": 0.1,
                "stiffness": 1000,
                "damping": 0.2,
                "pins": [{"where": {"nodes": [node]}, "motion": {"signal": side}} for side, node in corners.items()],
            }
        },
        "signals": {side: control(arc) for side in corners},
        "obstacles": FLOOR,
        "contact": {"stiffness": 1000, "friction": 0.5, "damping": 0.001, "damping_ramp": 0.0005},
        "markers": {
            "middle": {"body": "sheet", "point": [0, 0, 0]},
            "free corner": {"body": "sheet", "point": [0.2, 0.2, 0]},
        },
        "objective": [
            *({"type": "pose", "body": "sheet", **pose, "weight": 100} for pose in poses),
            *smoothness(1.0, *corners),
        ],
        "parameters": parameters(0.1, *corners),
        "optimizer": {"method": "gauss-newton", "max_evaluations": 25, "objective_tolerance": 1e-5},
        "check": {"steps": 10},
        "expect": {
            "simulate": {"newton.fallbacks": {"max": 0}, "contact.touching": {"min": 500}},
            "optimize": {
                "objective.end": {"max": 0.225},
                "markers.middle.final": {"value": [right, 0, 0], "abs_tol": 0.01},
                "markers.free corner.final": {"value": [0.2 + right, 0.2, 0], "abs_tol": 0.005},
                "newton.fallbacks": {"max": 0},
            },
        },
    }


def bands_cubes() -> Json:
    """Return Fig. 14c: a cube tipped over by elastic bands."""
    n, edge, height = 90, 0.1, 0.0497
    s = ease(times(n))
    upper = np.stack([0.1 * s, 0.0 * s, -0.02 * s], axis=1), np.stack([0.0 * s, 1.2 * s, 0.0 * s], axis=1)
    corners = {
        f"{end} {side}": (0.5 * edge * sx, 0.5 * edge * sy)
        for end, sx in (("front", 1), ("rear", -1))
        for side, sy in (("left", 1), ("right", -1))
    }
    return scene(
        "A cube tipped over by four elastic bands (ADD, Fig. 14c)",
        "Four bands join the corners of a cube that is led to those of a cube on the floor. How the upper one has to "
        "move and turn so that the lower one comes to rest on its side; the start turns it too little.",
        n,
    ) | {
        "bodies": {
            "lower": {
                "type": "rigid",
                "geometry": {"shape": "box", "size": [edge] * 3},
                "mass": 0.2,
                "position": [0, 0, height],
            },
            "upper": {
                "type": "kinematic",
                "geometry": {"shape": "box", "size": [edge] * 3},
                "position": [0, 0, 0.25],
                "translation": {"signal": "move"},
                "rotation": {"signal": "turn"},
            },
        },
        "signals": {"move": control(upper[0]), "turn": control(upper[1])},
        "obstacles": FLOOR,
        "couplings": {
            f"{corner} band": {
                "type": "cable",
                "a": {"body": "lower", "at": [x, y, 0.5 * edge]},
                "b": {"body": "upper", "at": [x, y, -0.5 * edge]},
                "length": 0.1003,  # as before the first row of its motion
                "stiffness": 20,
                "damping": 0.2,
                "collide": True,
            }
            for corner, (x, y) in corners.items()
        },
        "contact": {"stiffness": 2000, "friction": 0.6, "damping": 2, "damping_ramp": 0.002, "onset": 0.0005},
        "markers": {
            "lower": {"body": "lower", "center_of_mass": True},
            "top": {"body": "lower", "direction": [0, 0, 1]},
        },
        "objective": [
            {
                "type": "pose",
                "body": "lower",
                "translation": [edge, 0, height],
                "orientation": along_y(0.5 * np.pi),
                "window": [1.25, 1.5],
                "weight": 100,
            },
            *smoothness(0.5, "move"),
            *smoothness(0.02, "turn"),
        ],
        "parameters": parameters(0.1, "move") + parameters(0.5, "turn"),
        "optimizer": {"method": "gauss-newton", "max_evaluations": 40, "objective_tolerance": 1e-6},
        "check": {"steps": 30},
        "expect": {
            "simulate": {"newton.fallbacks": {"max": 0}, "couplings.taut": {"min": 50}},
            "optimize": {
                "objective.end": {"max": 0.006},
                "markers.lower.final": {"value": [edge, 0, height], "abs_tol": 0.005},
                "markers.top.final": {"value": [1, 0, 0], "abs_tol": 0.05},
                "newton.fallbacks": {"max": 0},
            },
        },
    }


#: Of each leg: along x, along y, and where in the gait it begins [-]. Diagonal legs step together: a trot.
LEGS = {
    "front left": (1, 1, 0.0),
    "front right": (1, -1, 0.5),
    "rear left": (-1, 1, 0.5),
    "rear right": (-1, -1, 0.0),
}
#: A dog of 29 kg: where the legs begin, from the trunk's centre, and their lengths [m]; how far the knees are bent
#: [rad]; period [s] and lift [rad] of the trot.
HIP, SIDE, LENGTH, RADIUS, BEND, PERIOD, LIFT = (0.25, 0.12), 0.06, 0.3, 0.025, 0.7, 0.4, 0.2
#: Height of the ankle above the floor, on a soft foot under load, and of the block under it without its crown [m].
SOLE, FOOT = 0.055, 0.05


def robot(n: int, soft: bool) -> Json:
    """Return rows 3 and 4: a robot with stiff joints and motors, on its shanks or on soft feet."""
    parts = _Robot(n, soft)
    for leg, (along, across, phase) in LEGS.items():
        parts.leg(leg, along, across, phase)
    feet = " on soft feet" if soft else ""
    height, signals = parts.height, tuple(parts.signals)
    track = [round((k + 1) / 8, 3) for k in range(8)]
    whole = [0, round(n * DT, 9)]
    return scene(
        f"A robot learns to walk{feet} (ADD, Table 2)",
        f"A robot of 29 kg with twelve motors{feet} trots on the spot. Which angles the motors have to hold, step by "
        "step, so that its trunk travels a metre at a steady speed, at its height and level. bdf1, since the second "
        "order keeps the ringing of stiff contacts alive, and with it the sensitivity to everything that came before.",
        n,
        "bdf1",
    ) | {
        "bodies": parts.bodies,
        "signals": parts.signals,
        "obstacles": FLOOR,
        "couplings": parts.couplings,
        "contact": {
            "stiffness": 100000,
            "friction": 0.8,
            "damping": 0.001 if soft else 0.1,
            "damping_ramp": 0.0005,
            "between_bodies": False,
        },
        "markers": {
            "trunk": {"body": "trunk", "center_of_mass": True},
            "up": {"body": "trunk", "direction": [0, 0, 1]},
            "ahead": {"body": "trunk", "direction": [1, 0, 0]},
        },
        "objective": [
            *(
                {
                    "type": "point",
                    "marker": "trunk",
                    "target": [x, 0, height],
                    "time": "end" if x == 1.0 else round(x * n * DT, 9),
                }
                for x in track
            ),
            {"type": "point", "marker": "up", "target": [0, 0, 1], "window": whole},
            {"type": "point", "marker": "ahead", "target": [1, 0, 0], "window": whole},
            *smoothness(0.001, *signals),
        ],
        "parameters": parameters(0.1, *signals),
        "optimizer": {"method": "gauss-newton", "max_evaluations": 20, "objective_tolerance": 1e-5},
        "check": {"steps": 2 if soft else 6},
        "expect": {
            "simulate": {
                "newton.fallbacks": {"max": 0},
                "contact.touching": {"min": 300},
                "markers.trunk.final": {"value": [0, 0, height], "abs_tol": 0.03},
            },
            "optimize": {
                "objective.end": {"max": 0.01},
                "markers.trunk.final": {"value": [1, 0, height], "abs_tol": 0.03},
                "markers.up.final": {"value": [0, 0, 1], "abs_tol": 0.1},
                "newton.fallbacks": {"max": 0},
            },
        },
    }


def _down(angle: float, length: float) -> FloatArray:
    """Return the way down a leg's link that leans by an angle about y."""
    return np.array([-np.sin(angle) * length, 0.0, -np.cos(angle) * length])


class _Robot:
    """The parts of a robot as they are made, leg after leg."""

    def __init__(self, n: int, soft: bool) -> None:
        self.t, self.soft = times(n), soft
        self.knee = _down(-BEND, LENGTH)
        self.ankle = self.knee + _down(BEND, LENGTH if soft else LENGTH - RADIUS)
        # Four spheres carry 29.2 kg at 1e5 N/m.
        above = SOLE if soft else RADIUS - 29.2 * 9.81 / 4e5
        self.height = round(float(above - self.ankle[2]), 6)
        trunk = {"shape": "box", "size": [0.6, 0.24, 0.12]}
        self.bodies: dict[str, Json] = {
            "trunk": {"type": "rigid", "geometry": trunk, "mass": 16, "position": [0, 0, self.height]}
        }
        self.couplings: dict[str, Json] = {}
        self.signals: dict[str, Json] = {}

    def leg(self, leg: str, along: int, across: int, phase: float) -> None:
        """Add a leg: hip, thigh and shank, three motors, and a foot."""
        out = np.array([0.0, across * SIDE, 0.0])
        hip = np.array([along * HIP[0], across * HIP[1], self.height])
        half = 0.5 * LENGTH
        self._link(f"{leg} hip", {"shape": "box", "size": [0.08, 0.06, 0.08]}, 1, hip + 0.5 * out, 0.0, False)
        thigh = {"shape": "capsule", "radius": 0.03, "half_length": half - 0.03}
        self._link(f"{leg} thigh", thigh, 1.5, hip + out + _down(-BEND, half), -BEND, False)
        shank = {"shape": "capsule", "radius": RADIUS, "half_length": half - RADIUS}
        place = hip + out + self.knee + _down(BEND, half)
        self._link(f"{leg} shank", shank, 0.8, place, BEND, not self.soft)
        s = np.mod(self.t / PERIOD + phase, 1.0)
        lift = LIFT * np.where(s < 0.5, np.sin(2.0 * np.pi * s) ** 2, 0.0) * np.clip(2.0 * self.t / PERIOD, 0.0, 1.0)
        self._hinge(leg, "abduction", "trunk", "hip", [0, -0.5 * across * SIDE, 0], [1, 0, 0], 0.0 * lift)
        self._hinge(leg, "swing", f"{leg} hip", "thigh", [0, 0, half], [0, 1, 0], -lift)
        self._hinge(leg, "knee", f"{leg} thigh", "shank", [0, 0, half], [0, 1, 0], 2.0 * lift)
        if self.soft:
            self._foot(leg, hip + out + self.ankle)

    def _link(self, name: str, geometry: Json, mass: float, place: FloatArray, angle: float, touches: bool) -> None:
        body = {"type": "rigid", "geometry": geometry, "mass": mass, "position": np.round(place, 9).tolist()}
        if angle:
            body["orientation"] = along_y(angle)
        if not touches:
            body["collision"] = {"points": False}
        self.bodies[name] = body

    def _hinge(self, leg: str, name: str, a: str, b: str, at: Json, axis: Json, angle: FloatArray) -> None:
        signal = f"{leg} {name}"
        self.signals[signal] = control(angle)
        self.couplings[signal] = {
            "type": "hinge",
            "a": {"body": a},
            "b": {"body": f"{leg} {b}", "at": at},
            "axis": axis,
            "stiffness": 500000,
            "angular_stiffness": 500000,
            "angular_damping": 10,
            "motor": {"angle": {"signal": signal}, "stiffness": 100000},
        }

    def _foot(self, leg: str, ankle: FloatArray) -> None:
        """Add a block of rubber under the ankle, whose top the shank holds."""
        self.bodies[f"{leg} foot"] = {
            "type": "soft",
            "mesh": {"file": "../data/meshes/foot.msh"},
            "material": {
                "model": "neo-hookean",
                "young": 1000000,
                "poisson": 0.3,
                "density": 1000,
                "viscosity": 200,
            },
            "position": np.round(ankle - [0.0, 0.0, 0.5 * FOOT], 9).tolist(),
        }
        self.couplings[f"{leg} ankle"] = {
            "type": "attachment",
            "body": f"{leg} shank",
            "nodes": f"{leg} foot",
            "where": {"box": {"min": [None, None, 0.5 * FOOT - 1e-6]}},
            "stiffness": 100000,
        }


def scenes() -> dict[str, Json]:
    """Return every scene by the name of its file."""
    return {
        "strings_cube": strings_cube(),
        "sheet_flip": sheet_flip(),
        "robot_rigid": robot(192, soft=False),
        "robot_soft_feet": robot(144, soft=True),
        "bands_cubes": bands_cubes(),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path(__file__).resolve().parents[1] / "scenes")
    folder = parser.parse_args().folder
    for name, raw in scenes().items():
        (folder / f"{name}.json").write_text(text(raw) + "\n", encoding="utf-8")
