"""Tissue tied to links and rigid bodies: gradients of runs, what other ways of holding nodes give, what is refused."""

from typing import Any

import numpy as np
import pytest
from support.actuated import check_gradient
from support.boned_arm import boned_arm
from support.tiers import long_case

from add.errors import InputError
from add.scene import scene_from_dict
from add.scene.build.built import BuiltScene
from add.terms import Inertia, TreeInertia

#: Two whole sections of the arm on each bone: nodes of the surface, and elements that do not deform.
SECTIONS = (
    {"min": [-0.07, None, None], "max": [-0.03, None, None]},
    {"min": [0.03, None, None], "max": [0.07, None, None]},
)


def small_arm(links: str, steps: int, integrator: str = "bdf1", **body: Any) -> dict[str, Any]:
    """Return the arm with few elements."""
    scene = boned_arm(links, steps, integrator)
    tissue = scene["bodies"]["tissue"]
    tissue["mesh"]["divisions"] = [6, 2, 2]
    for item, box in zip(tissue["embedded"], SECTIONS, strict=True):
        item["where"] = {"box": box}
    tissue |= body
    return scene


TREE = ("bodies.arm.drives.servo.g0", "bodies.arm.drives.servo.b1", "bodies.arm.links.fore.mass")
FREE = ("couplings.elbow.motor.stiffness", "bodies.fore.mass")


@pytest.mark.parametrize(
    ("links", "integrator", "element", "steps"),
    [
        ("tree", "bdf2", "hex8", 30), ("free", "bdf1", "tet4", 30),
        long_case("tree", "bdf1", "hex8", 200), long_case("tree", "bdf2", "tet10", 200),
        long_case("free", "bdf2", "hex8", 200),
    ],
)  # fmt: skip
def test_gradient_of_a_run(links: str, integrator: str, element: str, steps: int) -> None:
    """Reverse = forward to 1e-10, replayed differences to 1e-6: by modulus, density, torques, gains, mass of a link."""
    scene = small_arm(links, steps, integrator, element=element)
    own = TREE if links == "tree" else FREE
    check_gradient(scene, "bodies.tissue.mu", "bodies.tissue.density", "bodies.tissue.viscosity", *own)


def by_multipliers(scene: dict[str, Any]) -> dict[str, Any]:
    """Return the scene with all nodes held by multipliers."""
    for item in scene["bodies"]["tissue"]["embedded"]:
        item["by"] = "multipliers"
    return scene


@pytest.mark.parametrize(
    ("links", "integrator", "law", "steps"),
    [
        ("tree", "bdf2", "tanh", 20), ("free", "bdf1", "exact", 12),
        long_case("tree", "bdf1", "impulse", 12), long_case("free", "bdf1", "impulse", 12),
        long_case("tree", "bdf1", "tanh", 200), long_case("free", "bdf2", "tanh", 200),
    ],
)  # fmt: skip
def test_gradient_of_a_run_with_multipliers(links: str, integrator: str, law: str, steps: int) -> None:
    """The same with nodes held by multipliers: stress that relaxes, or contact without penalties."""
    scene = by_multipliers(small_arm(links, steps, integrator))
    own = TREE if links == "tree" else FREE
    if law == "tanh":
        scene["bodies"]["tissue"]["material"]["relaxation"] = {"slow": {"share": 0.3, "time": 0.02}}
        check_gradient(scene, "bodies.tissue.mu", "bodies.tissue.relaxation.slow.shares", *own)
        return
    # Nodes inside are tied: those that touch are none of them.
    scene["bodies"]["tissue"]["mesh"]["divisions"] = [6, 4, 2]
    for item, name in zip(scene["bodies"]["tissue"]["embedded"], ("upper", "fore"), strict=True):
        item.pop("where")
        item |= {"within": 0.004, "body": name if links == "free" else f"arm/{name}"}
    scene["obstacles"] = {"floor": {"shape": "plane", "point": [0, 0, -0.0215], "normal": [0, 0, 1]}}
    scene["contact"] = {"friction_law": law, "friction": 0.3}
    built = check_gradient(scene, "bodies.tissue.mu", "bodies.tissue.density", own[0], own[-1])
    assert places(built, built.run())[:, 2].min() == pytest.approx(-0.0215, abs=1e-9)


def places(built: BuiltScene, run: Any) -> np.ndarray:
    """Return the places of all nodes at the end."""
    lift = built.model.lift
    return lift.kinematics(run.kinematics(run.n_steps), built.theta).q[lift.rows["tissue"].slice].reshape(-1, 3)


def test_stiff_springs_tend_to_it() -> None:
    """At rest, nodes on springs are away from where they are tied by a force over the stiffness, held ones nowhere.

    Those are the forces between tissue and bones: together its weight.
    """
    scene = small_arm("tree", 4, mass="lumped")
    scene["time"] |= {"dt": 1e3, "substeps": "off"}
    scene["signals"] = {key: {"type": "constant", "value": x} for key, x in (("angle", 0.3), ("torque", 0.1))}
    built = scene_from_dict(scene).build()
    tied = places(built, built.run())
    by_forces = scene_from_dict(by_multipliers(scene)).build()
    run = by_forces.run()
    assert np.allclose(places(by_forces, run), tied, rtol=0.0, atol=1e-9)
    forces = by_forces.ties(run.records[-1])
    weight = 1000 * 0.2 * 0.04 * 0.04 * 9.81
    assert np.allclose(sum(one.force for one in forces.values()), [0, 0, -weight], rtol=0.0, atol=1e-8 * weight)
    nodes = [tie.nodes.tolist() for tie in built.model.body("tissue").ties]
    del scene["bodies"]["tissue"]["embedded"]
    away = []
    for stiffness in (1e5, 1e6):
        scene["couplings"] = {
            key: {"type": "attachment", "nodes": "tissue", "where": {"nodes": own}, "body": f"arm/{key}"}
            | {"stiffness": stiffness}
            for key, own in zip(("upper", "fore"), nodes, strict=True)
        }
        held = scene_from_dict(scene).build()
        away.append(np.abs(places(held, held.run()) - tied).max())
    assert np.ptp(tied[:, 2]) > 0.05
    assert away[0] < 2e-4
    assert away[0] / away[1] == pytest.approx(10.0, rel=0.03)


def test_nodes_on_a_given_motion_are_pins() -> None:
    """What is tied to a body that moves as given is where pins with that motion hold it."""
    way = {"type": "table", "times": [0, 0.1], "values": [[0, 0, 0], [0.01, 0.02, -0.01]]}
    scene = small_arm("free", 20, "bdf2", mass="lumped")
    tissue = scene["bodies"]["tissue"]
    scene["signals"] = {"way": way}
    scene["couplings"] = {}
    scene["bodies"] = {"tissue": tissue, "tool": {"type": "kinematic", "translation": {"signal": "way"}}}
    tissue["embedded"] = [{"body": "tool", "where": {"box": SECTIONS[0]}}]
    tied = scene_from_dict(scene).build()
    ends = places(tied, tied.run())
    del tissue["embedded"], scene["bodies"]["tool"]
    tissue["pins"] = [{"where": {"box": SECTIONS[0]}, "motion": {"signal": "way"}}]
    pinned = scene_from_dict(scene).build()
    expected = places(pinned, pinned.run())
    assert np.abs(expected - pinned.model.body("tissue").rest - [0.1, 0, 0]).max() > 0.01
    assert np.allclose(ends, expected, rtol=0.0, atol=1e-9)


def test_momentum_of_a_flight() -> None:
    """A spinning bone with tissue around it: mass and momentum are those of both, and no force changes them."""
    scene = small_arm("free", 30)
    scene["gravity"], scene["couplings"], scene["signals"] = [0, 0, 0], {}, {}
    bone = scene["bodies"]["upper"] | {"velocity": [0.3, -0.2, 0.1], "angular_velocity": [1, 4, 2]}
    tissue = scene["bodies"]["tissue"] | {"embedded": scene["bodies"]["tissue"]["embedded"][:1]}
    scene["bodies"] = {"tissue": tissue | {"velocity": [0.3, -0.2, 0.1]}, "upper": bone}
    built = scene_from_dict(scene).build()
    run, lift = built.run(), built.model.lift
    (of_nodes,), (of_tissue,) = built.model.term(Inertia), built.model.term(TreeInertia)
    start = built.model.system.dofs["upper"].start

    def momentum(step: int) -> np.ndarray:
        kin = run.kinematics(step)
        bone = 0.05 * kin.v[start : start + 3]
        return (
            of_nodes.momentum(lift.kinematics(kin, built.theta), built.theta)
            + bone
            + of_tissue.momentum(kin, built.theta)[:3]
        )

    mass = 1000 * 0.2 * 0.04 * 0.04 + 0.05
    assert np.allclose(momentum(30), momentum(1), rtol=0.0, atol=1e-8 * mass)
    assert np.linalg.norm(run.v[30, start + 3 : start + 6] - run.v[1, start + 3 : start + 6]) > 0.1
    state = built.model.body("tissue").state(
        lift.kinematics(run.kinematics(30), built.theta), built.model.node_masses(built.theta), built.theta,
        built.model.layouts,
    )  # fmt: skip
    assert state["mass"] == pytest.approx(mass - 0.05)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"embedded": [{"body": "arm/upper", "where": {"all": True}}, {"body": "arm/fore"}]}, "is tied twice"),
        ({"embedded": [{"body": "arm/upper", "where": {"all": True}}]}, "nothing deforms"),
        ({"embedded": [{"body": "arm/hand"}]}, "no body of that name"),
        ({"embedded": [{"body": "tissue"}]}, "tied to rigid bodies and links"),
        ({"position": [0.1, 0.1, 0]}, "no node is inside this body"),
        ({"embedded": [{"body": "arm/upper", "where": {"nodes": [0]}, "within": 0.01}]}, "node 0 is far from"),
        ({"pins": [{"where": {"all": True}}]}, "is tied to a link"),
        ({"point_masses": [{"mass": 1, "where": {"all": True}}]}, "is tied to a link"),
    ],
)  # fmt: skip
def test_what_is_refused(change: dict[str, Any], says: str) -> None:
    scene = boned_arm()
    scene["bodies"]["tissue"] |= change
    with pytest.raises(InputError, match=says):
        scene_from_dict(scene).build()


def test_tissue_on_a_body_that_starts_on_a_hinge_is_refused() -> None:
    """It was tied where the scene puts the bone, 0.5 rad beside where it starts; at angle zero both are the same."""
    scene = small_arm("free", 3)
    scene["couplings"]["elbow"]["start"] = {"angle": 0.5}
    with pytest.raises(InputError, match=r"embedded\.1: tissue is tied where the scene puts 'fore'.*on a hinge"):
        scene_from_dict(scene).build()
    scene["couplings"]["elbow"]["start"] = {"angle": 0.0}
    scene_from_dict(scene).build()


def test_contact_without_penalties_is_refused() -> None:
    scene = boned_arm()
    scene["contact"] = {"friction_law": "impulse"}
    with pytest.raises(InputError, match="knows no tied nodes"):
        scene_from_dict(scene).build()
