"""Runs under laws with a wall: nothing touches, gradients of whole runs, momentum, what is refused."""

from typing import Any

import numpy as np
import pytest
from support.places import SCENES
from support.run_checks import check_gradient_of_run, events, tight
from support.small_models import RoughObjective

import add
from add.contact import BodyContact, MeshContact
from add.equations.kinematics import Kinematics
from add.errors import InputError
from add.kernels.contact_pairs import BEYOND, BITS
from add.scene import apply_overrides, scene_from_dict
from add.scene.build.built import BuiltScene
from add.simulation.run import Trajectory
from add.terms import Inertia

BALL = {
    "type": "soft",
    "mesh": {"shape": "sphere", "radius": 0.05, "edge": 0.045},
    "material": {"young": 2e6, "poisson": 0.3, "density": 150.0, "viscosity": 50.0},
}
FLOOR = {"floor": {"shape": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}}
WALL = {"law": "penalty+wall", "thickness": 0.004}


def scene(raw: dict[str, Any]) -> BuiltScene:
    return scene_from_dict({"schema": "add-scene/1", **raw}).build()


def pressed(law: dict[str, Any], **contact: Any) -> dict[str, Any]:
    """Return a scene of a soft ball that a huge weight presses on a plane, and pushes along it."""
    return {
        "gravity": [100.0, 0.0, -1000.0],
        "time": {"dt": 0.001, "steps": 30},
        "bodies": {"ball": BALL | {"position": [0.0, 0.0, 0.0545]}},
        "obstacles": FLOOR,
        "contact": {"stiffness": 1e3, "damping": 0.5} | law | contact,
    }


def lowest(built: BuiltScene, trajectory: Trajectory, body: str = "ball") -> float:
    """Return the lowest height of a node of a soft body at the end of any step [m]."""
    dofs = built.model.system.dofs
    states = [trajectory.state(k).q[0] for k in range(len(trajectory.records) + 1)]
    return min(float(dofs.view(q, body)[:, 2].min()) for q in states)


def bits(trajectory: Trajectory) -> int:
    return int(np.bitwise_or.reduce([0, *(b for r in trajectory.records for d in r.decisions for b in d[:, BITS])]))


def test_a_wall_is_never_passed() -> None:
    """A ball under a hundred times its weight: the penalty lets it sink through the thickness and more."""
    sunk = scene(pressed({"law": "penalty"}))
    assert lowest(sunk, sunk.simulation.run()) < -0.01
    for law in ("penalty+wall", "log-barrier"):
        kept = scene(pressed(WALL | {"law": law}))
        trajectory = kept.simulation.run()
        assert 0.0 < lowest(kept, trajectory) < 0.002
        assert bool(bits(trajectory) & BEYOND) == (law == "penalty+wall")


def test_a_resting_ball_is_carried_by_the_law() -> None:
    """One point on a plane: at rest the law at its gap is the weight, in front of the wall and in it."""
    for stiffness, inside in ((1e5, False), (2e2, True)):
        raw = {
            "time": {"dt": 0.01, "steps": 300, "integrator": "bdf1"},
            "bodies": {
                "ball": {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.05}, "mass": 0.1,
                         "position": [0, 0, 0.054]}
            },
            "obstacles": FLOOR,
            "contact": {"stiffness": stiffness, "damping": 5.0} | WALL,
        }  # fmt: skip
        built = scene(raw)
        gap = built.simulation.run().state(300).q[0][2] - 0.05
        x = 1.0 - gap / 0.002
        wall = 0.002 * (-3.0 * x * x * np.log(1.0 - x) + x**3 / (1.0 - x)) if x > 0.0 else 0.0
        assert (x > 0.0) == inside and stiffness * (0.004 - gap + wall) == pytest.approx(0.981, rel=1e-6)


def test_a_fast_ball_does_not_pass_a_thin_plate() -> None:
    """Ten thicknesses a step: no iterate ends behind the plate; by the penalty the ball flies through."""
    raw = {
        "gravity": [0, 0, 0],
        "time": {"dt": 0.001, "steps": 20},
        "bodies": {"ball": BALL | {"position": [0.0, 0.0, 0.09], "velocity": [0, 0, -20.0]}},
        "obstacles": {"plate": {"shape": "box", "center": [0, 0, 0], "half_size": [0.2, 0.2, 0.001]}},
        "contact": {"stiffness": 10.0} | WALL | {"thickness": 0.002},
    }
    built = scene(raw)
    trajectory = built.simulation.run()
    assert lowest(built, trajectory) > 0.001
    end = built.model.system.dofs.view(trajectory.state(20).v[0], "ball")[:, 2].mean()
    assert end > 1.0, "it bounces"
    through = scene(raw | {"contact": {"stiffness": 10.0}})
    assert lowest(through, through.simulation.run()) < -0.1


def test_turning_bodies_keep_off_walls() -> None:
    """A long box that tumbles on a plane, and another one on it: points all over them keep their gaps at every step."""
    box = {"type": "rigid", "geometry": {"shape": "box", "size": [0.2, 0.04, 0.03]}, "density": 500.0,
           "collision": {"spacing": 0.02}}  # fmt: skip
    raw = {
        "gravity": [0, 0, -98.1],
        "time": {"dt": 0.004, "steps": 60},
        "bodies": {
            "one": box | {"position": [0, 0, 0.12], "angular_velocity": [3.0, 25.0, 8.0]},
            "two": box | {"position": [0.02, 0.01, 0.26], "orientation": [0.8, 0.0, 0.0, 0.6]},
        },
        "obstacles": FLOOR,
        "contact": {"stiffness": 300.0, "damping": 1.0, "damping_ramp": 0.002} | WALL,
    }  # fmt: skip
    built = scene(raw)
    trajectory = built.simulation.run()
    (term,) = built.model.term(BodyContact)
    for record in trajectory.records:
        # Behind a wall energy and force are infinite.
        assert np.isfinite(term.energy(record.kin, built.theta))
        assert np.isfinite(term.places(record.kin, built.theta, record.decisions[0]).force).all()
    between = {int(shape) for record in trajectory.records for shape in term.touching_pairs(record.decisions[0])[1]}
    assert between >= {0, 1} and bits(trajectory) & BEYOND


@pytest.mark.parametrize("stiffness", [2e5, 400.0], ids=["before the wall", "in the wall"])
def test_restitution(stiffness: float) -> None:
    """Before the wall it is Eq. 22's; the wall gives back what it takes, and a bounce in it loses less."""
    ball = {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.05}, "mass": 0.1, "position": [0, 0, 0.0541]}
    built = scene({
        "gravity": [0, 0, 0],
        "time": {"dt": 5e-5, "steps": 700},
        "bodies": {"ball": ball | {"velocity": [0, 0, -0.5]}},
        "obstacles": FLOOR,
        "contact": {"stiffness": stiffness, "damping_ramp": 2e-5,
                    "pairs": [{"between": ["ball", "floor"], "restitution": 0.6}]} | WALL,
    })  # fmt: skip
    trajectory = built.simulation.run()
    ratio = trajectory.state(700).v[0][2] / 0.5
    if stiffness > 1e3:
        assert ratio == pytest.approx(0.6, abs=0.03) and not bits(trajectory) & BEYOND
    else:
        assert 0.65 < ratio < 1.0 and bits(trajectory) & BEYOND


# --- gradients --------------------------------------------------------------------------------------------------------

#: Bodies in scenes of the checks of gradients, a few steps long: they touch, go into the wall and part or slide.
SOFT = {"ball": BALL | {"position": [0.0, 0.0, 0.0535], "velocity": [0.4, 0.1, -1.5]}}
RIGID = {
    "block": {"type": "rigid", "geometry": {"shape": "box", "size": [1.0, 0.8, 0.5]}, "mass": 20.0,
              "position": [0, 0, 0.2535], "velocity": [0.3, 0.05, -0.6], "angular_velocity": [0.03, -0.02, 0.05]},
    "top": {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.3}, "mass": 10.0,
            "position": [0.1, 0.0, 0.807], "velocity": [0.0, 0.0, -1.6]},
}  # fmt: skip


def run_under(bodies: dict[str, Any], friction: str, integrator: str, **contact: Any) -> BuiltScene:
    soft = bodies is SOFT
    stick = {} if friction == "tanh" else {"stick_stiffness": 2.0 if soft else 500.0}
    stiffness, damping = (400.0, 0.2) if soft else (1e5, 20.0)
    return scene({
        "time": {"dt": 0.001, "steps": 8, "integrator": integrator},
        "bodies": bodies,
        "obstacles": FLOOR,
        "contact": {"friction_law": friction, "friction": 0.3, "stiffness": stiffness, "damping": damping,
                    "damping_ramp": 0.001} | WALL | stick | contact,
    })  # fmt: skip


def check(built: BuiltScene, beyond: bool = True, layers: str = "thickness") -> None:
    simulation = tight(built.simulation)
    objective = RoughObjective(np.random.default_rng(0).normal(size=built.model.system.n))
    trajectory = check_gradient_of_run(simulation, objective)
    counts = events(simulation, trajectory)
    assert counts["touching"] > 5 and bool(bits(trajectory) & BEYOND) == beyond
    law = built.scene.contact.friction_law
    assert law != "linear" or counts["slipping"] > 0
    assert law != "hybrid" or counts["sticking"] > 0
    names = {built.model.system.parameters.describe(k) for k in range(built.theta.size)}
    assert any(layers in name for name in names)


MATRIX = [(b, f, i) for b in ("soft", "rigid") for f in ("linear", "tanh", "hybrid") for i in ("bdf1", "bdf2")]


@pytest.mark.parametrize(
    ("bodies", "friction", "integrator"),
    [pytest.param(*case, marks=() if case == ("rigid", "linear", "bdf2") else pytest.mark.slow) for case in MATRIX],
)
def test_gradients_of_points_and_shapes(bodies: str, friction: str, integrator: str) -> None:
    check(run_under(SOFT if bodies == "soft" else RIGID, friction, integrator))


@pytest.mark.slow
@pytest.mark.parametrize("law", ["soft-max", "log-barrier"])
@pytest.mark.parametrize("bodies", [SOFT, RIGID], ids=["soft", "rigid"])
def test_gradients_of_the_smooth_laws(bodies: dict[str, Any], law: str) -> None:
    more = {"thickness": 2e-4, "damping_ramp": 0.0} if law == "soft-max" else {}
    check(run_under(bodies, "tanh", "bdf2", law=law, **more), beyond=False)


SCENE = SCENES / "two_soft_balls.json"
#: A window of two soft balls with coarse meshes and skins that are soft: they meet fast and go into the wall.
QUICK = {
    "bodies.left.mesh.edge": 0.05,
    "bodies.right.mesh.edge": 0.045,
    "bodies.left.position": [-0.0515, 0.002, 0.0],
    "bodies.right.position": [0.0515, 0.0, 0.0],
    "bodies.left.velocity": [2.0, 0.3, 0.1],
    "contact.damping": 1e3,
    "contact.stiffness_per": "area",
    "contact.mesh.stiffness": 2e6,
    "time.dt": 0.001,
}


def balls(**overrides: Any) -> BuiltScene:
    return apply_overrides(add.load_scene(SCENE), QUICK | overrides).build()


@pytest.mark.parametrize("law", ["penalty", "penalty+wall"])
def test_meshes_with_a_wall_part_again_and_keep_their_momentum(law: str) -> None:
    """Skins so soft that without their wall surfaces are in the way of every step; all skins end in one."""
    built = balls(**{"contact.law": law, "time.steps": 40})
    trajectory = built.simulation.run()
    (term,) = built.model.term(MeshContact)
    depths = [term.depths(r.kin, built.theta, r.decisions[0]) for r in trajectory.records]
    deepest = max(float((d.depth / d.reach).max(initial=0.0)) for d in depths)
    assert 0.9 < deepest < 1.0 and bits(trajectory) & BEYOND and not len(trajectory.records[-1].decisions[0])

    def momentum(k: int) -> np.ndarray:
        v, r = trajectory.state(k).v[0], np.zeros(built.model.system.n)
        for inertia in built.model.term(Inertia):
            inertia.residual(Kinematics(np.zeros_like(v), np.zeros_like(v), v, 0.0, 0), built.theta, r)
        return r.reshape(-1, 3).sum(axis=0)

    size = 0.5 * 1000.0 * 4.0 / 3.0 * np.pi * 0.05**3 * 4.0
    assert max(np.abs(momentum(k) - momentum(0)).max() for k in range(5, 41, 5)) < 1e-12 * size


MESHES = [("linear", "bdf1"), ("linear", "bdf2"), ("tanh", "bdf1"), ("tanh", "bdf2"), ("hybrid", "bdf1"),
          ("hybrid", "bdf2")]  # fmt: skip


def slabs(integrator: str) -> BuiltScene:
    """Return two soft blocks on soft ground, one that stands and one that slides, in soft skins."""

    def block(size: list[float], divisions: list[int], **more: Any) -> dict[str, Any]:
        mesh = {"shape": "box", "size": size, "divisions": divisions}
        return {"type": "soft", "mesh": mesh, "material": {"young": 1e6, "poisson": 0.3, "density": 1000.0}} | more

    bottom = {"box": {"min": [-1, -1, -1], "max": [1, 1, -0.01]}}
    return scene({
        "gravity": [2.0, 0.0, -9.6],
        "time": {"dt": 0.002, "steps": 6, "integrator": integrator},
        "bodies": {
            "ground": block([0.5, 0.3, 0.03], [6, 5, 1], position=[0, 0, -0.015], pins=[{"where": bottom}]),
            "stands": block([0.1, 0.1, 0.05], [3, 3, 1], position=[0, -0.05, 0.0262]),
            "slides": block([0.06, 0.06, 0.03], [3, 2, 1], position=[0.01, 0.11, 0.0161], velocity=[0.4, -0.1, 0]),
        },
        "contact": {"law": "penalty+wall", "friction_law": "hybrid", "friction": 0.6, "stiffness_per": "area",
                    "damping": 1e4, "pairs": [{"between": ["slides", "ground"], "friction": 0.05}],
                    "mesh": {"thickness": 0.004, "stiffness": 2e5, "stick_stiffness": 1e5}},
    })  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("friction", "integrator"), MESHES)
def test_gradients_of_soft_meshes(friction: str, integrator: str) -> None:
    if friction == "hybrid":
        check(slabs(integrator), layers="half_thickness")
        return
    changed = {"contact.friction_law": friction, "time.integrator": integrator, "time.steps": 8}
    stick = {} if friction == "tanh" else {"contact.mesh.stick_stiffness": 2e4}
    check(balls(**changed, **stick, **{"contact.law": "penalty+wall"}), layers="half_thickness")


@pytest.mark.slow
@pytest.mark.parametrize(("friction", "integrator"), MESHES)
def test_gradients_of_rigid_meshes(friction: str, integrator: str) -> None:
    """A rigid block thrown on a rigid slab, by their meshes: rigid bodies under every friction and both formulas."""
    box = {"type": "rigid", "geometry": {"shape": "box", "size": [0.6, 0.5, 0.4]}, "mass": 20.0}
    slab = {"type": "rigid", "geometry": {"shape": "box", "size": [1.0, 0.9, 0.3]}, "mass": 60.0}
    stick = {} if friction == "tanh" else {"stick_stiffness": 2e4}
    built = scene({
        "time": {"dt": 0.001, "steps": 8, "integrator": integrator},
        "bodies": {
            "low": slab | {"position": [0.0, 0.0, 0.0]},
            "up": box | {"position": [0.05, 0.03, 0.372], "orientation": [0.98, 0.0, 0.0, 0.19899748742132398],
                         "velocity": [0.8, 0.1, -4.0], "angular_velocity": [0.1, -0.15, 0.3]},
        },
        "contact": {"law": "penalty+wall", "friction_law": friction, "friction": 0.3, "damping": 1e3,
                    "stiffness_per": "area", "pairs": [{"between": ["low", "up"], "by_meshes": True}],
                    "mesh": {"thickness": 0.03, "stiffness": 1e6} | stick},
    })  # fmt: skip
    check(built, layers="half_thickness")


@pytest.mark.slow
def test_gradients_of_the_barrier_of_meshes() -> None:
    scene_of = add.load_scene(SCENE)
    changed = {key: value for key, value in QUICK.items()} | {"contact.law": "log-barrier", "time.steps": 8}
    changed |= {"contact.mesh.onset": None, "contact.friction_law": "tanh"}
    check(apply_overrides(scene_of, changed).build(), beyond=False, layers="half_thickness")


# --- bad input --------------------------------------------------------------------------------------------------------

REFUSED = {
    "no thickness": ({"contact": {"law": "penalty+wall"}}, "contact.thickness", "not given"),
    "no law": ({"contact": {"thickness": 0.01}}, "contact.thickness", "no layer"),
    "law of a pair": (
        {"contact": {"pairs": [{"between": ["ball", "floor"], "thickness": 0.01}]}}, "pairs.0.thickness", "no layer"
    ),
    "unknown law": ({"contact": {"law": "wall"}}, "contact.law", "penalty"),
    "hard contact": ({"contact": WALL | {"friction_law": "impulse"}}, "contact.law", "hard contact"),
    "onset of a barrier": ({"contact": WALL | {"law": "log-barrier", "onset": 1e-3}}, "contact.onset", "sets in"),
    "ramp of the soft-max": (
        {"contact": WALL | {"law": "soft-max", "damping_ramp": 1e-3}}, "contact.damping_ramp", "as the force does"
    ),
    "restitution of a barrier": (
        {"contact": WALL | {"law": "log-barrier", "pairs": [{"between": ["ball", "floor"], "restitution": 0.5}]}},
        "pairs.0.restitution", "stiffness",
    ),
    "start behind the wall": (
        {"contact": WALL, "bodies": {"ball": BALL | {"position": [0, 0, 0.03]}}}, "bodies.ball", "behind the wall"
    ),
    "moving obstacle": (
        {"contact": WALL, "obstacles": {"floor": FLOOR["floor"] | {"velocity": [0.1, 0.0, 0.2]}}},
        "obstacles.floor.velocity", "no wall",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_one_error(case: str) -> None:
    change, place, text = REFUSED[case]
    raw = {"time": {"dt": 0.01, "steps": 1}, "bodies": {"ball": BALL | {"position": [0, 0, 0.06]}}, "obstacles": FLOOR}
    with pytest.raises(InputError) as caught:
        scene(raw | change)
    assert place in str(caught.value) and text in str(caught.value)


def test_a_plane_that_slides_in_itself_may_have_a_wall() -> None:
    belt = {"floor": FLOOR["floor"] | {"velocity": [0.5, 0.0, 0.0]}}
    raw = {"time": {"dt": 0.001, "steps": 100}, "bodies": {"ball": BALL | {"position": [0, 0, 0.0535]}}}
    built = scene(raw | {"obstacles": belt, "contact": {"stiffness": 1e3, "damping": 1.0} | WALL})
    trajectory = built.simulation.run()
    assert lowest(built, trajectory) > 0.0
    assert built.model.system.dofs.view(trajectory.state(100).v[0], "ball")[:, 0].mean() > 0.1


def test_meshes_have_skins_and_no_soft_max() -> None:
    with pytest.raises(InputError, match=r"contact\.law.*soft-max"):
        balls(**{"contact.law": "soft-max", "contact.mesh.onset": None})
    with pytest.raises(InputError, match=r"contact\.thickness.*skins"):
        balls(**{"contact.law": "penalty+wall", "contact.thickness": 0.01})


def test_pairs_have_their_own_thickness() -> None:
    """A row's thickness is a parameter of its own, with a derivative."""
    raw = pressed(WALL, pairs=[{"between": ["ball", "floor"], "thickness": 0.006}])
    built = scene(raw)
    assert {"contact.pairs.0.thickness", "contact.thickness"} <= {entry.name for entry in built.numbers.layout.entries}
    (term,) = built.model.term(BodyContact)
    assert term.pairs.thickness is not None and built.theta[term.pairs.thickness] == pytest.approx(0.006)
