"""The scenes that templates make of their answers."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from add.errors import InputError
from add.mocap import read_take

Answers = Mapping[str, Any]

_FLOOR = {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}}
_LOG = {"transform": "log", "scale": 0.3}
#: A servo gives what its joint can at this error [rad, m]; a first guess of a damping that a file does not say.
AT_EFFORT, DAMPING = 0.1, 0.01


def specimen(given: Answers) -> dict[str, Any]:
    """A clamped block, or a body of its own shape, released from its unloaded shape; with a recording, what fits it."""
    size, surface, places = given["size"], given["surface"], given["markers"]
    if surface is not None and not (places and given["clamp"]):
        raise InputError("a body of its own shape needs this", place="clamp" if places else "markers", found="nothing")
    _require("clamp", given, surface is not None, "a shape of its own (surface)")
    _require("mount", given, bool(given["rest"]), "times at which all markers rest (rest)")
    _require("rest", given, given["recording"] is not None, "a recording")
    middle = [0.0, 0.0, 0.0] if surface else [0.5 * edge for edge in size]
    places = places or {"tip": [size[0], middle[1], size[2]]}
    body: dict[str, Any] = {
        "type": "soft",
        "material": {"model": "neo-hookean", "young": given["young"], "poisson": given["poisson"],
                     "density": given["density"], "viscosity": given["viscosity"]},
        "position": middle,
    }  # fmt: skip
    if surface:
        filled = surface.rpartition(".")[2].lower() in ("stl", "obj", "ply", "off")
        axis, side, end = given["clamp"]
        held = [end if k == axis else None for k in range(3)]
        body |= {"mesh": {"surface": surface, "edge": given["edge"]} if filled else {"file": surface},
                 "scale": given["scale"], "element": "tet10",
                 "pins": [{"where": {"box": {"min" if side == ">" else "max": held}}}]}  # fmt: skip
    else:
        across = [max(2, round(side / (0.5 * min(size[1:])))) for side in size[1:]]
        cells = [max(4, round(2.0 * size[0] / max(size[1:]))), *across]
        body |= {"mesh": {"shape": "box", "size": size, "divisions": cells}, "element": "hex8", "mean_dilatation": True,
                 "pins": [{"where": {"box": {"max": [-middle[0], None, None]}}}]}  # fmt: skip
    rest = {name: [a - b for a, b in zip(place, middle, strict=True)] for name, place in places.items()}
    scene: dict[str, Any] = {
        "schema": "add-scene/1",
        "name": "A specimen that is let go",
        "description": "A body of soft material, clamped at one end, is let go from its unloaded shape and rings down "
        "under gravity. Markers count from " + ("the surface's origin." if surface else
                                                "the clamped corner: x along the block, z up."),
        "time": {"dt": 0.005, "duration": given["duration"], "integrator": "bdf2"},
        "gravity": [0.0 - 9.81 * part for part in given["up"]],
        "bodies": {"specimen": body},
        "markers": {name: {"body": "specimen", "point": place} for name, place in rest.items()},
        "check": {"steps": 5},
    }  # fmt: skip
    if given["recording"] is not None:
        scene["recording"] = {
            "file": given["recording"], "time_offset": given["release"], "displacement": True,
            "crop": [0, given["duration"]], "markers": {name: name for name in places},
        }  # fmt: skip
        if given["rest"]:
            scene["recording"]["register"] = {"window": given["rest"], "markers": places | given["mount"]}
        scene["objective"] = [{"type": "markers"}]
        scene["parameters"] = [
            {"path": "bodies.specimen.material.young", **_LOG},
            {"path": "bodies.specimen.material.viscosity", **_LOG},
            *([{"path": "recording.time_offset", "scale": 0.01}] if given["release"] else []),
        ]
        scene["optimizer"] = {"method": "gauss-newton", "max_evaluations": 30}
    return scene


def _require(name: str, given: Answers, has: bool, what: str) -> None:
    """Refuse an answer that would do nothing."""
    if given[name] and not has:
        raise InputError("this needs more", place=name, found=str(given[name]), expected=what)


def robot(given: Answers) -> dict[str, Any]:
    """A robot from its file, on servos if its hand has a target; with a recording, its dampings and where it starts."""
    from add.scene.robots import read_robot

    base = None if given["base"] == "file" else given["base"]
    # The scene counts the file from its own folder, where the command writes it; the names come from here.
    found = read_robot(given["model"], base=base)
    if not found.links:
        raise InputError("nothing moves in this robot", file=given["model"], expected="joints, or base=free")
    free = any(joint.kind == "free" for joint in found.joints)
    place: dict[str, Any] = {"base": base} if base else {}
    if given["height"]:
        place["position"] = [0, 0, given["height"]]  # without one a robot stands where its file puts it
    hand = given["hand"] or found.links[-1].name
    scene: dict[str, Any] = {
        "schema": "add-scene/1",
        "name": f"The robot {found.name}",
        "description": "A robot from its file" + (
            ", whose servos bring its hand to a target; their angles over time are found." if given["target"] else "."
        ),
        "time": {"dt": 0.005, "duration": given["duration"], "integrator": "bdf2"},
        "bodies": {"robot": {"type": "articulated", "model": given["model"], **place}},
        "markers": {"hand": {"body": f"robot/{hand}", "point": given["point"]}},
        "check": {"steps": 20},
    }  # fmt: skip
    if free:
        scene["obstacles"] = _FLOOR
        scene["contact"] = {"friction": 0.6}  # robots weigh 1 to 200 kg: numbers by weight and size
    if given["target"]:
        moved = [j for j in found.joints if j.kind in ("hinge", "slide") and j.mimic is None]
        times = [given["duration"] * k / 4 for k in range(5)]
        stiffness = {
            j.name: given["servo"] or (j.effort / AT_EFFORT if 0.0 < j.effort < np.inf else 100.0) for j in moved
        }
        scene["bodies"]["robot"]["drives"] = {
            name: {"joint": name, "type": "position", "input": {"signal": name}, "stiffness": value,
                   "damping": 0.05 * value}
            for name, value in stiffness.items()
        }  # fmt: skip
        scene["signals"] = {j.name: {"type": "spline", "times": times, "values": [j.start] * 5} for j in moved}
        scene["objective"] = [{"type": "point", "marker": "hand", "target": given["target"], "time": "end"}]
        scene["parameters"] = [{"path": f"signals.{j.name}.values"} for j in moved]
        scene["optimizer"] = {"max_evaluations": 60}
    for name in ("markers", "start"):
        _require(name, given, given["recording"] is not None, "a recording")
    if given["recording"] is not None:
        if given["target"] or not given["markers"]:
            raise InputError("a recording is of markers on a robot without servos", place="target" if given["target"]
                             else "markers", found=str(given["target"] or "nothing"))  # fmt: skip
        places = {name: (link or hand, point) for name, (link, point) in given["markers"].items()}
        scene["markers"] = {name: {"body": f"robot/{link}", "point": point} for name, (link, point) in places.items()}
        scene["recording"] = {
            "file": given["recording"], "time_offset": given["release"], "crop": [0, given["duration"]],
            "markers": {name: name for name in places},
        }  # fmt: skip
        swings = [j for j in found.joints if j.kind in ("hinge", "slide") and j.mimic is None]
        values = given["start"] or [j.start for j in swings]
        if len(values) != len(swings):
            raise InputError("a value for each joint", place="start", found=f"{len(values)}",
                             expected=", ".join(j.name for j in swings))  # fmt: skip
        place["joints"] = {
            j.name: {"value": value, "damping": j.damping or DAMPING} for j, value in zip(swings, values, strict=True)
        }
        scene["bodies"]["robot"] |= place
        scene["objective"] = [{"type": "markers"}]
        scene["parameters"] = [
            *({"path": f"bodies.robot.joints.{j.name}.damping", **_LOG} for j in swings),
            *({"path": f"bodies.robot.joints.{j.name}.value", "scale": 0.05} for j in swings),
        ]
        scene["optimizer"] = {"method": "gauss-newton", "max_evaluations": 40}
    return scene


def two_bodies(given: Answers) -> dict[str, Any]:
    """Two soft balls that fly at each other; the velocity of one is found, so that the other ends at a target."""
    radius, speed = given["radius"], given["speed"]
    edge, hardest = 0.6 * radius, max(given["young_left"], given["young_right"])

    def ball(side: float, young: float, size: float) -> dict[str, Any]:
        return {
            "type": "soft",
            "mesh": {"shape": "sphere", "radius": radius, "edge": size},
            "material": {"model": "neo-hookean", "young": young, "poisson": 0.3, "density": given["density"],
                         "viscosity": 2e-4 * young},
            "position": [side * 1.15 * radius, 0, 0],
            "velocity": [-side * speed, 0, 0],
        }  # fmt: skip

    return {
        "schema": "add-scene/1",
        "name": "Two soft bodies",
        "description": "Two soft balls fly at each other and bounce, their surfaces touch with friction. The velocity "
        "of the left one is to be found, so that the right one ends at a target.",
        "gravity": [0, 0, 0],
        "time": {"dt": 0.0005, "duration": given["duration"], "integrator": "bdf2"},
        "bodies": {"left": ball(-1.0, given["young_left"], edge), "right": ball(1.0, given["young_right"], 0.9 * edge)},
        "contact": {"friction": given["friction"],
                    "mesh": {"thickness": 0.12 * radius, "stiffness": 20.0 * hardest / radius, "onset": 0.06 * radius}},
        "markers": {"left": {"body": "left", "surface": {"all": True}},
                    "right": {"body": "right", "surface": {"all": True}}},
        "objective": [{"type": "point", "marker": "right", "target": given["target"], "time": "end"}],
        "parameters": [{"path": "bodies.left.velocity", "scale": 0.2}],
        "optimizer": {"method": "gauss-newton", "max_evaluations": 30},
        "check": {"steps": 20},
    }  # fmt: skip


def throw(given: Answers) -> dict[str, Any]:
    """A soft ball thrown with a bounce to a target."""
    radius = given["radius"]
    return {
        "schema": "add-scene/1",
        "name": "A throw with a bounce",
        "description": "A soft ball is thrown on the floor; the velocity is to be found that ends it at a target.",
        "time": {"dt": 0.002, "duration": given["duration"], "integrator": "bdf2"},
        "bodies": {
            "ball": {
                "type": "soft",
                "mesh": {"shape": "sphere", "radius": radius, "edge": 0.6 * radius},
                "material": {"model": "neo-hookean", "young": given["young"], "poisson": 0.3,
                             "density": given["density"], "viscosity": 2.5e-4 * given["young"]},
                "position": [0, 0, 3.0 * radius],
                "velocity": [0.8, 0, 0],
            }
        },
        "obstacles": _FLOOR,
        "contact": {"stiffness": 1e6, "stiffness_per": "area", "friction": given["friction"], "onset": 0.003},
        "markers": {"centre": {"body": "ball", "surface": {"all": True}}},
        "objective": [{"type": "point", "marker": "centre", "target": given["target"], "time": "end"}],
        "parameters": [{"path": "bodies.ball.velocity"}],
        "check": {"steps": 90},
    }  # fmt: skip


def toss(given: Answers) -> dict[str, Any]:
    """A rigid body that flies onto a table; with a recording, its start is that of the flight."""
    size, table = given["size"], given["table"]
    corner = [0.5 * edge for edge in size]
    places = given["markers"] or {"top": corner, "other": [-corner[0], -corner[1], corner[2]]}
    body: dict[str, Any] = {"type": "rigid", "mass": given["mass"]}
    body["geometry"] = {"file": given["surface"]} if given["surface"] else {"shape": "box", "size": size}
    scene: dict[str, Any] = {
        "schema": "add-scene/1",
        "name": "A toss on a table",
        "description": "A rigid body is tossed on a table and comes to rest; contact by impulses, with Coulomb's "
        "friction and a restitution.",
        "time": {"dt": 0.002, "duration": given["duration"], "integrator": "bdf1"},
        "bodies": {"thing": body},
        "obstacles": {"table": {"shape": "plane", "point": [0, 0, table], "normal": [0, 0, 1]}},
        "contact": {
            "friction_law": "impulse", "friction": given["friction"],
            "pairs": [{"body": "thing", "obstacle": "table", "restitution": given["restitution"]}],
        },
        "markers": {name: {"body": "thing", "point": place} for name, place in places.items()},
        "check": {"steps": 20},
    }  # fmt: skip
    if given["recording"] is None:
        body |= {"position": [0, 0, table + 1.5 * max(size)], "velocity": [0.8, 0.2, 0], "angular_velocity": [2, 3, 0]}
        return scene
    body["start"] = "recording"
    poses = read_take(given["recording"]).markers is None
    scene["recording"] = {
        "file": given["recording"], "time_offset": given["release"], "crop": [0, given["duration"]],
        **({"pose": {"body": "thing"}} if poses else {"markers": {name: name for name in places}}),
    }  # fmt: skip
    scene["objective"] = [{"type": "markers"}]
    scales = {"position": 0.002, "orientation": 0.02, "velocity": 0.05, "angular_velocity": 0.5}
    scene["parameters"] = [
        *({"path": f"bodies.thing.{key}", "scale": scale} for key, scale in scales.items()),
        {"path": "contact.friction", **_LOG, "bounds": [0.01, 2]},
        {"path": "contact.pairs.0.restitution", "scale": 0.1, "bounds": [0, 1]},
    ]
    scene["optimizer"] = {"method": "gauss-newton", "max_evaluations": 30}
    return scene


def chain(given: Answers) -> dict[str, Any]:
    """Arms on hinges about one horizontal axis; their first angles and rates are those of the recording."""
    lengths, masses = given["lengths"], given["masses"]
    if len(lengths) != len(masses):
        raise InputError(
            "an arm has a length and a mass", place="masses", found=f"{len(masses)}", expected=f"{len(lengths)} numbers"
        )
    n, zero = len(lengths), 1.0 if given["zero"] == "up" else -1.0
    values, rates, names = np.full(n, 0.5), np.zeros(n), list(given["angles"])
    if given["recording"] is None and (names or given["zero"] != "down"):
        key = "angles" if names else "zero"
        raise InputError("this is said of the angles of a recording", place=key, found="no recording")
    if given["recording"] is not None:
        values, rates, names = _first_angles(given, n)
        # Joints count from the arm before, the first one from where the arms hang.
        values, rates = (np.diff(x, prepend=0.0) for x in (values, rates))
        values[0] += np.pi if given["zero"] == "up" else 0.0
    links, joints, markers = {}, {}, {}
    for k, (length, mass) in enumerate(zip(lengths, masses, strict=True)):
        link, inertia = f"arm{k + 1}", mass * length**2 / 12.0
        links[link] = {
            "mass": mass, "center_of_mass": [0, 0, -0.5 * length],
            "inertia": [inertia, inertia, 0.01 * inertia, 0, 0, 0],
        }  # fmt: skip
        joints[f"joint{k + 1}"] = {
            "child": link, "axis": [0, -1, 0], "value": round(float(values[k]), 6), "rate": round(float(rates[k]), 6),
            "damping": 1e-4 * mass * length,
        }  # fmt: skip
        if k:
            joints[f"joint{k + 1}"] |= {"parent": f"arm{k}", "position": [0, 0, -lengths[k - 1]]}
        markers[link] = {"body": f"chain/{link}", "direction": [0, 0, -1]}
    scene: dict[str, Any] = {
        "schema": "add-scene/1",
        "name": f"A pendulum of {n} arms",
        "description": "Arms on hinges swing in a plane under gravity, with damping in each hinge.",
        "time": {"dt": 0.002, "duration": given["duration"], "integrator": "bdf2"},
        "bodies": {"chain": {"type": "articulated", "links": links, "joints": joints}},
        "markers": markers,
        "check": {"steps": 20},
    }
    if given["recording"] is None:
        return scene
    seen = {
        name: {"marker": link, "axis": [0, -1, 0], "zero": [0, 0, zero]}
        for name, link in zip(names, links, strict=True)
    }
    scene["recording"] = {
        "file": given["recording"], "time_offset": given["release"], "crop": [0, given["duration"]], "angles": seen,
    }  # fmt: skip
    scene["objective"] = [{"type": "markers"}]
    scene["parameters"] = [
        item
        for joint, link in zip(joints, links, strict=True)
        for item in (
            {"path": f"bodies.chain.joints.{joint}.value", "scale": 0.01},
            {"path": f"bodies.chain.joints.{joint}.rate", "scale": 0.1},
            {"path": f"bodies.chain.joints.{joint}.damping", **_LOG},
            {"path": f"bodies.chain.links.{link}.inertia", "components": [1], **_LOG},
        )
    ]
    scene["optimizer"] = {"method": "gauss-newton", "max_evaluations": 40}
    return scene


def _first_angles(given: Answers, n: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Return angles and rates of the arms at the start, and their names in the file."""
    found = read_take(given["recording"]).require_angles()
    names = list(given["angles"] or found.names)
    missing = [name for name in names if name not in found.names]
    if missing or len(names) != n or len(set(names)) < n:
        raise InputError(
            "one angle an arm", place="angles", file=given["recording"], found=", ".join(missing or names),
            expected=f"{n} of {', '.join(found.names)}",
        )  # fmt: skip
    columns = np.array([found.names.index(name) for name in names])
    near = np.sort(np.argsort(np.abs(found.times - given["release"]))[:5])
    if near.size < 3:
        raise InputError("too few frames to tell rates by", place="recording", file=given["recording"],
                         found=f"{near.size}", expected="three about the start, or more")  # fmt: skip
    # A parabola through the frames about the start: its value and slope there. Angles may jump by a turn.
    seen = np.unwrap(found.angles[np.ix_(near, columns)], axis=0)
    lines = np.polyfit(found.times[near] - given["release"], seen, 2)
    return lines[2], lines[1], names
