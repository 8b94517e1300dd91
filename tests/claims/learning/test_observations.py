"""What environments see of bodies, hinges and contacts: the numbers that a scene means by the same names."""

import numpy as np
import pytest

from add.errors import InputError
from add.gym import Env
from add.scene import scene_from_dict
from add.scene.build.observations import Seen, observations

BOX = {"type": "rigid", "geometry": {"shape": "box", "size": [0.1, 0.1, 0.1]}, "mass": 1.0}


def seen(raw: dict, names: list[str], step: int = 0) -> np.ndarray:
    built = scene_from_dict({"schema": "add-scene/1", "time": {"dt": 0.005, "steps": max(step, 1)}} | raw).build()
    run = built.run()
    record = run.records[step - 1] if step else None
    return observations(built, names)(Seen(run.state(step), record, built.numbers.values, built.theta))


def test_a_position_is_that_of_the_frame_as_in_the_scene() -> None:
    """Of a body whose centre of mass lies beside its frame's origin, turned, at the start and on the way."""
    turn = [np.cos(0.4), 0.0, 0.0, np.sin(0.4)]
    body = BOX | {"center_of_mass": [0.02, 0.0, 0.01], "position": [1.0, 2.0, 3.0], "orientation": turn}
    raw = {"bodies": {"box": body | {"velocity": [0.0, 0.0, 1.0]}}, "gravity": [0, 0, 0]}
    assert seen(raw, ["bodies.box.position"]) == pytest.approx([1.0, 2.0, 3.0], abs=1e-12)
    assert seen(raw, ["bodies.box.position"], 20) == pytest.approx([1.0, 2.0, 3.1], abs=1e-9)
    assert seen(raw, ["bodies.box.velocity"]) == pytest.approx([0.0, 0.0, 1.0], abs=1e-12)


@pytest.mark.parametrize("motor", [{}, {"motor": {"angle": 0.0, "stiffness": 5.0}}])
def test_the_angle_of_a_hinge_counts_from_the_start_of_a_motion(motor: dict) -> None:
    """As the hinge's own does, by which its motor pulls: zero at t = 0 wherever a given motion has turned its body."""
    other = {"type": "kinematic", "rotation": [0.0, 0.0, 0.3]}
    hinge = {"type": "hinge", "a": {"body": "turned", "at": [0, 0, 0]}, "b": {"body": "box"}, "axis": [0, 0, 1]}
    hinge |= {"stiffness": 1e4, "angular_stiffness": 100.0} | motor
    raw = {"bodies": {"turned": other, "box": BOX}, "couplings": {"pin": hinge}, "gravity": [0, 0, 0]}
    assert seen(raw, ["couplings.pin.angle"]) == pytest.approx([0.0], abs=1e-12)
    raw["bodies"]["box"] = BOX | {"angular_velocity": [0.0, 0.0, 1.0]}
    assert seen(raw, ["couplings.pin.angle"], 1) == pytest.approx([0.005], rel=0.1)


def arm(**more: object) -> dict:
    ball = {"mass": 1.0, "shapes": [{"geometry": {"shape": "sphere", "radius": 0.1}}]}
    joints = {"upper": {"axis": [0, 1, 0], "value": 0.4}, "hand": {"parent": "upper", "position": [0.3, 0, 0]}}
    return {"type": "articulated", "links": {"upper": ball, "hand": ball}, "joints": joints} | more


def test_the_angle_of_a_hinge_on_a_link() -> None:
    hinge = {"type": "hinge", "a": {"body": "arm/hand", "at": [0, 0, 0]}, "b": {"body": "box"}, "axis": [0, 0, 1]}
    hinge |= {"stiffness": 1e4, "angular_stiffness": 100.0}
    box = BOX | {"position": [0.3 * np.cos(0.4), 0.0, -0.3 * np.sin(0.4)]}
    raw = {"bodies": {"arm": arm(), "box": box}, "couplings": {"pin": hinge}, "gravity": [0, 0, 0]}
    assert seen(raw, ["couplings.pin.angle", "couplings.pin.rate"]) == pytest.approx([0.0, 0.0], abs=1e-12)


def test_the_contact_of_a_tree_is_that_of_all_its_links() -> None:
    """At rest on a floor, two balls of 1 kg bear their weight."""
    free = arm(base="free", position=[0, 0, 0.1])
    free["joints"] = {"upper": {}, "hand": {"parent": "upper", "position": [0.3, 0, 0], "axis": [0, 1, 0]}}
    floor = {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}}
    names = ["contact.arm", "contact.arm/upper", "contact.arm/hand"]
    whole, upper, hand = seen({"bodies": {"arm": free}, "obstacles": floor}, names, 200).reshape(3, 3)
    assert whole == pytest.approx(upper + hand, abs=1e-12)
    assert whole == pytest.approx([0.0, 0.0, 2 * 9.81], abs=1e-3)


def test_a_bound_in_single_precision_is_within_it() -> None:
    """A policy of 32 bits at the bound of 0.1 acts with 0.10000000149."""
    raw = {"schema": "add-scene/1", "time": {"dt": 0.005, "steps": 3}, "bodies": {"box": BOX}}
    raw |= {"signals": {"push": {"type": "constant", "value": [0, 0, 0]}}}
    raw |= {"couplings": {"push": {"type": "force", "on": {"body": "box"}, "force": {"signal": "push"}}}}
    env = Env(scene_from_dict(raw), actions={"push": (-0.1, 0.1)}, observations=["bodies.box.velocity"])
    for sign in (-1.0, 1.0):
        env.reset()
        found = env.step(np.full(3, sign * 0.1, dtype=np.float32))[0]
        assert found[:2] == pytest.approx(sign * 0.1 * 0.005, rel=1e-6)
        with pytest.raises(InputError, match="an action is outside its bounds"):
            env.step(np.full(3, sign * 0.1001))
