"""Lengths, places and directions that couplings leave open are those of t = 0, where given motions begin."""

from dataclasses import replace

import numpy as np
import pytest

from add.errors import InputError
from add.joints.law_term import JointLaw
from add.scene import scene_from_dict

BALL = {"type": "rigid", "mass": 1.0, "geometry": {"shape": "sphere", "radius": 0.05}, "position": [0, 0, 1]}
HELD = {"body": "ball", "at": [0, 0, 0.02]}
SIGNALS = {
    "way": {"type": "table", "times": [0, 1], "values": [[0.3, 0.1, 0.02], [0, 0, 0.5]]},
    "turn": {"type": "spline", "times": [0, 1, 2], "values": [[0.1, 0.2, 0.5], [0, 1, 0], [1, 1, 1]]},
    "angle": {"type": "sine", "offset": 0.4, "amplitude": 0.2, "frequency": 1.0, "phase": 0.3},
}
HANDLE = {
    "type": "kinematic", "geometry": BALL["geometry"], "position": [1, 2, 3], "orientation": [0.8, 0.6, 0, 0],
    "translation": {"signal": "way"}, "rotation": {"signal": "turn"},
}  # fmt: skip
LINK = {"mass": 1, "inertia": [0.01, 0.01, 0.01, 0, 0, 0]}
ARM = {
    "type": "articulated", "links": {"a": LINK, "c": LINK},
    "joints": {
        "a": {"axis": [0, 0, 1], "motion": {"signal": "angle"}},
        "c": {"type": "slide", "parent": "a", "axis": [1, 0, 0], "value": 0.2, "motion": 0.3},
    },
}  # fmt: skip
FIRM = {"stiffness": 1e3, "angular_stiffness": 10.0}


def scene(couplings, **more):
    bodies = {"ball": BALL, "handle": HANDLE, "arm": ARM} | more.pop("bodies", {})
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 2}, "gravity": [0, 0, 0], "signals": SIGNALS}
    return scene_from_dict(raw | {"bodies": bodies, "couplings": couplings} | more)


@pytest.mark.parametrize("body", ["handle", "arm/c"])
@pytest.mark.parametrize("kind", ["spring", "ball", "fixed", "hinge", "slider"])
def test_nothing_acts_where_the_motion_begins(kind, body):
    """A spring between the ball and a handle 0.4 m from where the scene puts it was 0.04 m off, and a joint turned."""
    given = {"stiffness": 100.0} if kind in ("spring", "ball") else FIRM
    given |= {"axis": [0, 1, 0]} if kind in ("hinge", "slider") else {}
    open_end = HELD if kind == "spring" else {"body": "ball"}
    item = {"type": kind, "a": {"body": body, "at": [0.1, 0.2, 0]}, "b": open_end} | given
    built = scene({"c": item}).build()
    kin = replace(built.model.begins(built.theta), v=np.zeros(built.model.lift.rows.n))
    forces = [np.ravel(term.forces(kin, built.theta)) for term in built.model.term(JointLaw)]
    assert forces and max(np.abs(force).max() for force in forces) < 1e-11


def test_a_length_follows_the_first_value_of_a_motion():
    """A run's derivative by the numbers of the motion, the open length among what it moves, by differences."""
    item = {"type": "spring", "a": {"body": "handle", "at": [0.1, 0.2, 0]}, "b": HELD, "stiffness": 100.0}
    built = scene({"c": item}).build()
    weights = np.random.default_rng(3).normal(size=(3, built.model.system.n))
    for path in ("signals.way.values", "signals.turn.values"):
        one = np.array(built.rollout({path: SIGNALS[path.split(".")[1]]["values"]}).q)
        at, h = np.array(SIGNALS[path.split(".")[1]]["values"], dtype=float), 1e-5
        bar = built.rollout({path: at}).vjp(weights)[path]
        for k in np.ndindex(2, 3):
            step = np.zeros_like(at)
            step[k] = h
            two = [built.rollout({path: at + sign * step}).q for sign in (1, -1)]
            assert bar[k] == pytest.approx(float((weights * (two[0] - two[1])).sum() / (2 * h)), rel=1e-5, abs=1e-7)
        assert np.abs(bar[0]).max() > 1e-3 and np.isfinite(one).all()


def test_ends_that_start_elsewhere_are_refused():
    """A spring to a body that starts on a hinge had the length of where the scene puts that: 2.24 m, not 2.75."""
    hinged = {"a": BALL | {"position": [0, 0, 0]}, "b": BALL | {"position": [1, 0, 0]}}
    hinge = {"type": "hinge", "axis": [0, 1, 0], "a": {"body": "a", "at": [0, 0, 0]}, "start": {"angle": 0.7}} | FIRM
    hinge |= {"b": {"body": "b", "at": [-1, 0, 0]}}
    spring = {"type": "spring", "a": {"at": [0, 0, 2]}, "b": {"body": "b", "at": [0, 0, 0]}, "stiffness": 100.0}
    with pytest.raises(InputError, match=r"couplings\.s: .*'b' starts elsewhere.*0\.686 m"):
        scene({"h": hinge, "s": spring}, bodies=hinged).build()
    scene({"h": hinge, "s": spring | {"length": 1.0}}, bodies=hinged).build()
    point = {"type": "mass-spring", "mesh": {"points": [[0, 0, 0]]}, "pins": [{"where": {"all": True}}]}
    point["pins"][0]["motion"] = {"signal": "way"}
    string = {"type": "cable", "a": HELD, "b": {"body": "point"}, "stiffness": 5.0}
    with pytest.raises(InputError, match=r"couplings\.s: .*'point' starts elsewhere.*0\.317 m"):
        scene({"s": string}, bodies={"point": point}).build()
    scene({"s": string | {"length": 0.5}}, bodies={"point": point}).build()


@pytest.mark.parametrize("by", ["condensation", "multipliers"])
def test_tissue_on_a_link_is_at_rest_where_the_motion_begins(by):
    """Embedded nodes were 0.16 m away from the tissue around them."""
    tissue = {
        "type": "soft", "mesh": {"shape": "box", "size": [0.2, 0.1, 0.1], "divisions": [2, 1, 1]},
        "position": [0.5, 0, 0], "material": {"young": 1e4, "poisson": 0.3, "density": 1e3},
        "embedded": [{"body": "arm/a", "where": {"box": {"max": [-0.09, 1, 1]}}, "by": by}],
    }  # fmt: skip
    arm = {"type": "articulated", "links": {"a": LINK}, "joints": {"a": {"axis": [0, 0, 1], "motion": 0.4}}}
    raw = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 2}, "gravity": [0, 0, 0]}
    run = scene_from_dict(raw | {"bodies": {"arm": arm, "tissue": tissue}}).build().run()
    assert np.abs(run.q - run.q[0]).max() < 1e-12
