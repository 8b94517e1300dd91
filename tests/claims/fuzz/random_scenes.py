"""Random scenes with parameters: every kind of body, joint, law, integrator, objective, experiment, prior and phase.

A seed gives the same scene every time. Scenes are small, so that hundreds of them can be differentiated in a minute;
bodies start close above a floor and move towards it, so that most runs touch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from add.errors import InputError
from add.scene import Scene, scene_from_dict

KINDS = ("soft", "sheet", "particle", "box", "sphere", "capsule", "cylinder", "kinematic")
JOINTS = ("spring", "cable", "ball", "hinge", "hinge", "fixed", "slider", "attachment", "attachment", "force")
RIGID = ("box", "sphere", "capsule", "cylinder")


def _vector(rng: np.random.Generator, size: float) -> list[float]:
    return [round(float(x), 6) for x in rng.uniform(-size, size, 3)]


def _quaternion(rng: np.random.Generator) -> list[float]:
    x, y, z, w = Rotation.from_rotvec(rng.uniform(-1.0, 1.0, 3)).as_quat().tolist()
    return [w, x, y, z]


class _Maker:
    """One scene while it is drawn."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.kinds: dict[str, str] = {}
        self.raw: dict[str, Any] = {}

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def one_of(self, choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def make(self, folder: Path) -> dict[str, Any]:
        rng = self.rng
        n_steps = int(rng.integers(5, 9))
        dt = self.one_of((0.002, 0.004))
        self.raw = {
            "schema": "add-scene/1",
            "time": {"dt": dt, "duration": n_steps * dt, "integrator": self.one_of(("bdf1", "bdf2"))},
            "gravity": [0.3, -0.2, -9.81] if self.chance(0.3) else [0, 0, -9.81],
            "signals": {},
            "bodies": {},
            "obstacles": {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0.1, 0, 1]}},
            "couplings": {},
            "markers": {},
            "objective": [],
            "parameters": [],
        }
        self._bodies()
        self._couplings()
        self._contact()
        self._markers()
        self._objective(folder, n_steps * dt)
        return self.raw

    def _bodies(self) -> None:
        rng = self.rng
        for k in range(int(rng.integers(2, 4))):
            kind, name = self.one_of(KINDS), f"b{k}"
            self.kinds[name] = kind
            position = [0.15 * k, *_vector(rng, 0.02)[:1], 0.045]
            body: dict[str, Any] = {"position": position, "orientation": _quaternion(rng)}
            if kind != "kinematic":
                body["velocity"] = [*_vector(rng, 0.5)[:2], -1.5]
                body["angular_velocity"] = _vector(rng, 2.0)
            getattr(self, f"_{kind if kind not in RIGID else 'rigid'}")(name, body)
            self.raw["bodies"][name] = body

    def _soft(self, name: str, body: dict[str, Any]) -> None:
        material = {"model": self.one_of(("neo-hookean", "neo-hookean-ciarlet")), "density": 900.0}
        if self.chance(0.7):
            material |= {"young": 3e4, "poisson": 0.3}
        else:
            material |= {"mu": 1e4, "lambda": 2e4}
        material |= {"viscosity": 1.0, "rayleigh_mass": 0.4, "rayleigh_stiffness": 1e-3 if self.chance(0.5) else 0.0}
        body |= {
            "type": "soft",
            "mesh": {"shape": "box", "size": [0.06, 0.05, 0.06], "divisions": [1, 1, 1]},
            "element": self.one_of(("tet4", "hex8")),
            "material": material,
        }
        if self.chance(0.3):
            body["anchors"] = [{"at": [0.0, 0.0, 0.0]}]
        if self.chance(0.3):
            body["loads"] = [{"where": {"nodes": [0]}, "force": _vector(self.rng, 0.5)}]

    def _sheet(self, name: str, body: dict[str, Any]) -> None:
        mesh = {"shape": "sheet", "size": [0.06, 0.06], "divisions": [2, 1]}
        body |= {"type": "particles", "mesh": mesh, "mass": 0.05, "stiffness": 200.0, "damping": 0.05}

    def _particle(self, name: str, body: dict[str, Any]) -> None:
        body |= {"type": "particles", "mesh": {"points": [[0.0, 0.0, 0.0]]}, "mass": 0.1}
        body["position"][2] = 0.004

    def _rigid(self, name: str, body: dict[str, Any]) -> None:
        geometry = {
            "box": {"shape": "box", "size": [0.06, 0.05, 0.07]},
            "sphere": {"shape": "sphere", "radius": 0.042},
            "capsule": {"shape": "capsule", "radius": 0.02, "half_length": 0.03},
            "cylinder": {"shape": "cylinder", "radius": 0.03, "half_length": 0.03},
        }[self.kinds[name]]
        body |= {"type": "rigid", "geometry": geometry}
        body |= {"mass": 0.2} if self.chance(0.5) else {"density": 800.0}

    def _kinematic(self, name: str, body: dict[str, Any]) -> None:
        body |= {"type": "kinematic", "geometry": {"shape": "box", "size": [0.08, 0.08, 0.02]}}
        self.raw["signals"][f"move_{name}"] = {
            "type": "control", "rows": 4, "end": 0.03, "values": [_vector(self.rng, 0.01) for _ in range(4)],
        }  # fmt: skip
        body["translation"] = {"signal": f"move_{name}"}

    # --- couplings -------------------------------------------------------------------------------------------------

    def _couplings(self) -> None:
        names = list(self.kinds)
        wanted = int(self.rng.integers(1, 4))
        for k in range(20):
            kind = self.one_of(JOINTS)
            a, b = (str(x) for x in self.rng.choice(names, 2, replace=False))
            made = getattr(self, f"_joint_{kind}", self._pair)(kind, a, b)
            if made is not None and len(self.raw["couplings"]) < wanted:
                self.raw["couplings"][f"c{k}"] = {"type": kind, **made}

    def _place(self, body: str) -> list[float]:
        """Return a place that the body has: a node where it must be one."""
        if self.kinds[body] == "sheet":
            return [0.03, 0.03, 0.0]
        return [0.0, 0.0, 0.0] if self.kinds[body] == "particle" else _vector(self.rng, 0.02)

    def _ends(self, a: str, b: str | None) -> dict[str, Any]:
        first, second = {"body": a, "at": self._place(a)}, {"at": _vector(self.rng, 0.05)}
        if b is not None:
            second = {"body": b, "at": self._place(b)}
            if self.kinds[b] in (*RIGID, "kinematic", "particle") and self.chance(0.5):
                del second["at"]
        return {"a": first, "b": second}

    def _pair(self, kind: str, a: str, b: str) -> dict[str, Any] | None:
        item: dict[str, Any] = {"stiffness": 300.0, "damping": 0.3}
        if kind in ("hinge", "fixed", "slider"):
            if self.kinds[a] not in (*RIGID, "kinematic") or self.kinds[b] not in RIGID:
                return None
            item |= {"angular_stiffness": 3.0, "angular_damping": 0.01}
        elif self.kinds[a] == self.kinds[b] == "kinematic":
            return None
        item |= self._ends(a, b)
        if kind in ("hinge", "slider"):
            item["axis"] = _vector(self.rng, 2.0)
        if kind == "hinge":
            self._on_hinge(item, a)
        # A spring of some length whose ends begin at one place has no direction, and its matrix is singular.
        if kind in ("spring", "cable") and self.chance(0.5) and "at" in item["b"]:
            item["length"] = 0.1
        return item

    def _on_hinge(self, item: dict[str, Any], a: str) -> None:
        if self.chance(0.4):
            item["motor"] = {"angle": 0.3, "stiffness": 2.0}
        if self.chance(0.4):
            item["limits"] = {"lower": -0.01, "upper": 0.02, "stiffness": 5.0, "damping": 0.01}
        if self.chance(0.4):
            item["friction"] = {"viscous": 0.01, "coulomb": 0.02, "rate": 0.5}
        starts = any("start" in other for other in self.raw["couplings"].values())
        if self.kinds[a] in RIGID and not starts and self.chance(0.5):
            item["start"] = {"angle": 0.2, "rate": 1.0}

    def _joint_attachment(self, kind: str, a: str, b: str) -> dict[str, Any] | None:
        if self.kinds[a] not in ("soft", "sheet") or self.kinds[b] not in RIGID:
            return None
        return {"nodes": a, "where": {"nodes": [0, 1]}, "body": b, "stiffness": 200.0, "damping": 0.2}

    def _joint_force(self, kind: str, a: str, b: str) -> dict[str, Any] | None:
        if self.kinds[a] == "kinematic":
            return None
        return {"on": {"body": a, "at": self._place(a)}, "force": _vector(self.rng, 1.0)}

    # --- contact, markers, objective, parameters ---------------------------------------------------------------------

    def _contact(self) -> None:
        contact: dict[str, Any] = {
            "stiffness": 2e3, "damping": 2.0, "friction": 0.4, "onset": self.one_of((0.0, 0.003)),
            "damping_ramp": 0.002,
            "friction_law": self.one_of(("linear", "tanh", "hybrid", "none")),
        }  # fmt: skip
        rigid = [name for name, kind in self.kinds.items() if kind in RIGID]
        if rigid and self.chance(0.4):
            contact["pairs"] = [{"body": rigid[0], "obstacle": "floor", "restitution": 0.6, "friction": 0.2}]
        self.raw["contact"] = contact

    def _markers(self) -> None:
        for name, kind in self.kinds.items():
            if kind in (*RIGID, "kinematic"):
                self.raw["markers"][f"p_{name}"] = {"body": name, "point": _vector(self.rng, 0.03)}
                self.raw["markers"][f"d_{name}"] = {"body": name, "direction": _vector(self.rng, 3.0)}
            else:
                self.raw["markers"][f"p_{name}"] = {"body": name, "nodes": [0]}

    def _objective(self, folder: Path, end: float) -> None:
        rng, objective = self.rng, self.raw["objective"]
        for name in self.raw["markers"]:
            item: dict[str, Any] = {"type": "point", "marker": name, "target": _vector(rng, 0.3), "time": "end"}
            if self.chance(0.3):
                item["time"] = round(float(rng.uniform(0.4, 0.95)) * end, 5)
            objective.append(item)
        objective.append({"type": "line", "marker": next(iter(self.raw["markers"])), "point": [0, 0, 0.1],
                          "direction": _vector(rng, 2.0), "time": "end", "weight": 0.5})  # fmt: skip
        if self.raw["signals"]:
            signal = next(iter(self.raw["signals"]))
            objective.append({"type": self.one_of(("smoothness", "proximity")), "signal": signal, "weight": 0.1})
        if self.chance(0.4):
            self._recording(folder, end)

    def _recording(self, folder: Path, end: float) -> None:
        rng = self.rng
        names = [name for name in self.raw["markers"] if name.startswith("p_")]
        times = np.arange(-0.2 * end, 1.3 * end, 0.23 * end)
        columns = [times, *rng.uniform(-0.1, 0.4, (3 * len(names), times.size))]
        path = folder / f"recording_{rng.integers(1 << 40):x}.csv"
        head = ",".join(["time_s", *(f"{name}_{axis}_m" for name in names for axis in "xyz")])
        np.savetxt(path, np.stack(columns, axis=1), delimiter=",", header=head, comments="")
        markers = {name: name for name in names}
        self.raw["recording"] = {"file": str(path), "markers": markers, "time_offset": 0.05 * end}
        if self.chance(0.3):
            self.raw["recording"]["displacement"] = True
        self.raw["objective"].append({"type": "markers", "weight": 2.0})


def random_scene(seed: int, folder: Path) -> Scene:
    """Return a scene that is valid and has parameters, and often experiments, priors and phases."""
    for attempt in range(50):
        maker = _Maker(1000 * seed + attempt)
        try:
            raw = maker.make(folder)
            return _with_parameters(scene_from_dict(raw), maker)
        except InputError:
            continue
    raise AssertionError(f"seed {seed} gives no valid scene")


def _with_parameters(scene: Scene, maker: _Maker) -> Scene:
    """Return the scene with some of its numbers as parameters, and with experiments, priors and phases."""
    rng, raw = maker.rng, dict(scene.raw)
    built = scene.build()
    paths = [entry.name for entry in built.numbers.layout.entries]
    ties = [path for path in paths if path.endswith((".axis", ".position", ".orientation", ".direction", ".at"))]
    wanted = list(rng.permutation(paths)[:4]) + list(rng.permutation(ties)[:3])
    experiments = []
    if maker.chance(0.4):
        moving = [name for name, kind in maker.kinds.items() if kind != "kinematic"]
        if not moving:
            raise InputError("nothing is free to move")
        body = maker.one_of(moving)
        overrides = {f"bodies.{body}.velocity": _vector(rng, 1.0), "time.dt": 0.5 * raw["time"]["dt"]}
        experiments = [{"name": "one"}, {"name": "two", "overrides": overrides}]
        raw["experiments"] = experiments
    parameters = []
    for path in dict.fromkeys(str(item) for item in wanted):
        parameter: dict[str, Any] = {"path": path}
        if experiments and maker.chance(0.3):
            parameter["experiment"] = "two"
        if path == "recording.time_offset":
            parameter["bounds"] = [0.0, 0.1 * scene.time.end]
        parameters.append(parameter)
    raw = _with(raw, parameters)
    if not raw["parameters"]:
        raise InputError("no parameter")
    first = raw["parameters"][0]
    if maker.chance(0.4):
        prior = {"type": "prior", "parameter": first["path"], "mean": 0.1, "sigma": 2.0}
        raw = _if_valid(raw | {"objective": [*raw["objective"], prior]}, raw)
    if maker.chance(0.4):
        phases = [
            {"name": "first", "parameters": [first["path"]]},
            {"name": "all", "overrides": {"contact.stiffness": 1500.0} if maker.chance(0.5) else {}},
        ]
        raw = _if_valid(raw | {"optimizer": {"phases": phases}}, raw)
    return scene_from_dict(raw)


def _with(raw: dict[str, Any], parameters: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the scene with those of the parameters that it may have, found by halving."""
    whole = raw | {"parameters": [*raw["parameters"], *parameters]}
    valid = _if_valid(whole, raw)
    if valid is whole or len(parameters) < 2:
        return valid
    half = len(parameters) // 2
    return _with(_with(raw, parameters[:half]), parameters[half:])


def _if_valid(raw: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    try:
        scene_from_dict(raw).inverse_problem()
    except InputError:
        return before
    return raw
