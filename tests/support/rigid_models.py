"""Small runs with rigid bodies that touch, spin past a chart, stick and slip: one builder a pair of bodies."""

from itertools import product

import numpy as np

from add.bodies import CarriedShape, MassSpringBody, RigidBody, SoftBody
from add.contact import FrictionLaw
from add.equations.signals import SignalParameter, Sine
from add.geometry import HEX8, box_mesh
from add.kernels.shape_codes import BOX, CAPSULE, PLANE, SPHERE
from add.model import ContactModel, Model, Obstacle, build_model
from add.scene import scene_from_dict
from add.simulation import BDF
from add.simulation.run import Simulation
from add.simulation.start import GivenStart
from add.solve.step_equations import NewtonOptions

NEWTON = NewtonOptions(atol=1e-12, rtol=0.0, max_iterations=80)
DT = 0.002

#: Off-centre and with products of inertia, so that nothing vanishes by symmetry.
CENTRE = (0.004, -0.003, 0.002)
#: Rotation vectors this long pass pi within a few steps.
NEARLY_TURNED = (0.3, 0.2, 3.08)


def box(name: str, size: tuple[float, float, float], *, shape: bool = True, **kwargs) -> RigidBody:
    """A box with a point at every corner."""
    half = np.array(size) / 2.0
    points = np.array(list(product(*((-h, h) for h in half))))
    shapes = (CarriedShape(BOX, tuple(half), np.eye(3), np.zeros(3)),) if shape else ()
    return RigidBody(name, points, np.zeros(8), np.full(8, 0.01), shapes, **kwargs)


def box_inertia(mass: float, size: tuple[float, float, float]) -> np.ndarray:
    """Principal moments of a solid box, with some products of inertia added."""
    squares = np.array(size) ** 2
    moments = mass / 12.0 * (squares.sum() - squares)
    return np.concatenate([moments, 0.1 * moments.min() * np.array([1.0, -0.5, 0.7])])


def put(model: Model, theta: np.ndarray, **values) -> None:
    """Set parameters; ``__`` stands for a point in their names."""
    for name, value in values.items():
        model.system.parameters.view(theta, name.replace("__", "."))[...] = value


def put_contact(model: Model, theta: np.ndarray, **values: float) -> None:
    """Set contact parameters of all pairs, each a little different."""
    for k, entry in enumerate(e for e in model.system.parameters.entries if e.name.startswith("contact.")):
        theta[entry.slice] = values[entry.name.rsplit(".", 1)[1]] * (1.0 + 0.03 * (k // 4))


def put_body(model: Model, theta: np.ndarray, name: str, size, mass: float, **pose) -> None:
    """Set mass properties and pose of a box."""
    numbers = {"mass": mass, "inertia": box_inertia(mass, size), "centre": CENTRE, **pose}
    put(model, theta, **{f"bodies__{name}__{key}": value for key, value in numbers.items()})


def floor(height: float = 0.0) -> Obstacle:
    """A plane with free space above."""
    return Obstacle("floor", PLANE, (0.0, 0.0, 0.0), np.eye(3), np.array([0.0, 0.0, height]), np.zeros(3))


def contact(law: FrictionLaw) -> ContactModel:
    """Different options with each law."""
    onset = 3e-4 if law is FrictionLaw.TANH else 0.0
    return ContactModel(law=law, onset=onset, ramp=5e-4, total_normal=law is FrictionLaw.LINEAR)


SIZE = (0.1, 0.08, 0.06)
LAWS = {"k_n": 2000.0, "k_d": 1.0, "k_t": 6.0, "c_f": 0.35}


def laws(law: FrictionLaw) -> dict[str, float]:
    """Hybrid friction holds a point that the linear law lets creep only if it is rough enough."""
    return LAWS | ({"c_f": 1.4} if law is FrictionLaw.HYBRID else {})


def rigid_on_world(law: FrictionLaw, stepper: BDF) -> tuple[Model, Simulation]:
    """A box thrown against a floor and a moving ball of the world."""
    ball = Obstacle("ball", SPHERE, (0.05, 0, 0), np.eye(3), np.array([0.13, 0.0, 0.03]), np.array([-0.2, 0, 0]))
    model = build_model([box("box", SIZE, shape=False)], obstacles=[floor(), ball], contact=contact(law))
    theta = np.zeros(model.system.parameters.n)
    put(model, theta, gravity=(0.2, 0.1, -9.81))
    put_body(model, theta, "box", SIZE, 0.1, position=(0.0, 0.0, 0.055), orientation=NEARLY_TURNED,
             velocity=(0.5, 0.1, -0.7), angular_velocity=(2.0, 1.0, 4.0))  # fmt: skip
    put_contact(model, theta, **laws(law))
    return model, Simulation(model.system, GivenStart(model.initial), stepper, 34, theta)


def rigid_on_rigid(law: FrictionLaw, stepper: BDF) -> tuple[Model, Simulation]:
    """A box thrown against a capsule that spins in the air."""
    capsule = RigidBody(
        "capsule",
        np.array([[0.0, 0.0, -0.05], [0.0, 0.0, 0.05]]),
        np.full(2, 0.03),
        np.full(2, 0.01),
        (CarriedShape(CAPSULE, (0.03, 0.05, 0.0), np.eye(3), np.zeros(3)),),
    )
    model = build_model([box("box", SIZE), capsule], contact=contact(law))
    theta = np.zeros(model.system.parameters.n)
    put(model, theta, gravity=(0.2, 0.1, -1.0))
    put_body(model, theta, "box", SIZE, 0.1, position=(0.0, 0.0, 0.085), orientation=NEARLY_TURNED,
             velocity=(0.4, 0.1, -1.0), angular_velocity=(2.0, 1.0, 4.0))  # fmt: skip
    put_body(model, theta, "capsule", (0.06, 0.06, 0.16), 0.15, position=(0.01, 0.005, 0.0),
             orientation=(2.2, 0.1, 2.2), angular_velocity=(3.0, 1.0, 3.0))  # fmt: skip
    put_contact(model, theta, **laws(law))
    return model, Simulation(model.system, GivenStart(model.initial), stepper, 24, theta)


def soft_on_rigid(law: FrictionLaw, stepper: BDF) -> tuple[Model, Simulation]:
    """A soft block falls on a spinning rigid plate (whose shape it meets) over a floor."""
    size = (0.2, 0.16, 0.04)
    soft = SoftBody("soft", box_mesh((0.05, 0.05, 0.05), (1, 1, 1), HEX8))
    model = build_model([soft, box("plate", size)], [floor(-0.055)], contact(law))
    theta = np.zeros(model.system.parameters.n)
    height = 0.0495 if law is FrictionLaw.HYBRID else 0.048
    put(model, theta, gravity=(0.2, 0.1, -4.0), bodies__soft__mu=2e4, bodies__soft__lambda=3e4,
        bodies__soft__density=400.0, bodies__soft__viscosity=3.0, bodies__soft__position=(0.01, 0.0, height),
        bodies__soft__orientation=(0.1, 0.05, 0.2), bodies__soft__velocity=(0.4, 0.1, -0.6),
        bodies__soft__angular_velocity=(1.0, 2.0, -1.0))  # fmt: skip
    put_body(model, theta, "plate", size, 0.3, orientation=(0.02, 0.05, 3.1), velocity=(0.0, 0.1, -0.2),
             angular_velocity=(0.2, 0.1, 3.0))  # fmt: skip
    put_contact(model, theta, **(LAWS | {"c_f": 0.8 if law is FrictionLaw.HYBRID else 0.6, "k_t": 10.0}))
    return model, Simulation(model.system, GivenStart(model.initial), stepper, 26, theta)


def particles_on_rigid(law: FrictionLaw, stepper: BDF) -> tuple[Model, Simulation]:
    """A small net falls on a spinning ball."""
    x = np.array([-0.04, 0.0, 0.04])
    points = np.array([[a, b, 0.0] for a, b in product(x, x)])
    edges = np.array([(i, j) for i, j in product(range(9), range(9)) if i < j and
                      np.linalg.norm(points[i] - points[j]) < 0.06])  # fmt: skip
    net = MassSpringBody("net", points, np.full(9, 1.0 / 9.0), edges)
    ball = RigidBody("ball", np.zeros((1, 3)), np.full(1, 0.06), np.full(1, 0.01),
                     (CarriedShape(SPHERE, (0.06, 0.0, 0.0), np.eye(3), np.array([0.003, 0.0, 0.0])),))  # fmt: skip
    model = build_model([net, ball], [floor(-0.075)], contact(law))
    theta = np.zeros(model.system.parameters.n)
    put(model, theta, gravity=(0.2, 0.1, -4.0), bodies__net__mass=0.09, bodies__net__rayleigh_mass=0.5,
        bodies__net__stiffness=150.0, bodies__net__damping=0.05, bodies__net__position=(0.005, 0.0, 0.064),
        bodies__net__lengths=np.linalg.norm(points[edges[:, 0]] - points[edges[:, 1]], axis=1),
        bodies__net__orientation=(0.1, 0.05, 0.2), bodies__net__velocity=(0.3, 0.1, -0.6),
        bodies__net__angular_velocity=(1.0, 2.0, -1.0))  # fmt: skip
    put_body(model, theta, "ball", (0.1, 0.1, 0.1), 0.2, orientation=NEARLY_TURNED, velocity=(0.0, 0.1, -0.3),
             angular_velocity=(2.0, 1.0, 4.0))  # fmt: skip
    put_contact(model, theta, **(laws(law) | {"k_n": 600.0, "k_d": 0.2, "k_t": 0.4}))
    return model, Simulation(model.system, GivenStart(model.initial), stepper, 38, theta)


def rigid_on_moving(law: FrictionLaw, stepper: BDF) -> tuple[Model, Simulation]:
    """A box falls on a plate whose translation and rotation are given."""
    plate = RigidBody("plate", np.zeros((0, 3)), np.zeros(0), np.zeros(0),
                      (CarriedShape(BOX, (0.2, 0.2, 0.02), np.eye(3), np.zeros(3)),), kinematic=True,
                      translation=SignalParameter(Sine(4.0, 0.3), "lift"),
                      rotation=SignalParameter(Sine(3.0, 0.1), "tilt"))  # fmt: skip
    model = build_model([box("box", SIZE, shape=False), plate], contact=contact(law))
    theta = np.zeros(model.system.parameters.n)
    put(model, theta, gravity=(0.2, 0.1, -9.81), lift=[[0.0, 0.0, 0.0], [0.004, 0.002, 0.006]],
        tilt=[[0.02, -0.01, 0.0], [0.05, 0.03, 0.2]], bodies__plate__orientation=(0.1, 0.0, 0.3))  # fmt: skip
    put_body(model, theta, "box", SIZE, 0.1, position=(0.0, 0.0, 0.08), orientation=NEARLY_TURNED,
             velocity=(0.3, 0.1, -0.7), angular_velocity=(2.0, 1.0, 4.0))  # fmt: skip
    put_contact(model, theta, **laws(law))
    return model, Simulation(model.system, GivenStart(model.initial), stepper, 34, theta)


PAIRS = {
    "rigid-on-world": rigid_on_world,
    "rigid-on-rigid": rigid_on_rigid,
    "soft-on-rigid": soft_on_rigid,
    "particles-on-rigid": particles_on_rigid,
    "rigid-on-moving": rigid_on_moving,
}


def _bar(position, **more) -> dict:
    """A heavy bar along x that touches nothing."""
    nothing = {"points": False, "shape": False}
    geometry = {"shape": "box", "size": [0.2, 0.04, 0.03]}
    return {"type": "rigid", "geometry": geometry, "mass": 0.2, "position": position, "collision": nothing, **more}


def linkage(stepper: BDF, n_steps: int = 32) -> tuple[Model, Simulation]:
    """A driven chain with every coupling: motor, stops, friction, spring, cables, slider, joints, net, forces."""
    stiff = {"stiffness": 2000.0, "damping": 0.5}
    angular = {"angular_stiffness": 20.0, "angular_damping": 0.01}
    scene = scene_from_dict({
        "schema": "add-scene/1",
        "name": "linkage",
        "time": {"dt": stepper.dt, "steps": n_steps},
        "gravity": [0.1, 0.2, -9.81],
        "bodies": {
            "base": {"type": "kinematic", "translation": {"signal": "move"}, "rotation": {"signal": "tilt"}},
            "arm": _bar([0.1, 0, 0], velocity=[0, 0.1, 0], angular_velocity=[0.3, 0, 4]),
            "hand": _bar([0.3, 0, 0], orientation=[0.02, 0, 0, 0.9998], angular_velocity=[0.2, 0, 9]),
            "cart": _bar([0.0, 0.3, 0.1], velocity=[1.0, 0, 0], orientation=[0.8, 0.36, 0.48, 0]),
            "drop": _bar([0.55, 0.02, -0.05], orientation=[0.02, 0.9998, 0, 0], velocity=[-0.2, 0, 0],
                         angular_velocity=[5, 1, 2]),
            "lid": _bar([0.3, 0.01, 0.06], angular_velocity=[0, 2, 0]),
            "net": {"type": "particles", "mass": 0.03, "stiffness": 80.0, "damping": 0.02, "collision": False,
                    "mesh": {"points": [[0, 0, 0], [0.05, 0, 0], [0, 0.06, 0]], "edges": [[0, 1], [1, 2], [0, 2]]},
                    "position": [0.3, 0.1, -0.1], "velocity": [0.5, 0, 0]},
        },
        "signals": {
            "move": {"type": "table", "times": [0, 0.05, 0.1], "values": [[0, 0, 0], [0.004, 0, 0.003], [0, 0, 0.01]]},
            "tilt": {"type": "table", "times": [0, 0.1], "values": [[0.1, 0, 0.05], [0.1, 0.2, 0]]},
            "aim": {"type": "table", "times": [0, 0.1], "values": [0.1, 0.9]},
            "push": {"type": "table", "times": [0, 0.1], "values": [0.0, 0.2]},
        },
        "couplings": {
            "shoulder": {"type": "hinge", "a": {"body": "base", "at": [0, 0, 0]}, "b": {"body": "arm"},
                         "axis": [0, 0.1, 1], "motor": {"angle": {"signal": "aim"}, "stiffness": 1.5},
                         "friction": {"viscous": 0.002, "coulomb": 0.01, "rate": 0.5}, **stiff, **angular},
            "elbow": {"type": "hinge", "a": {"body": "arm", "at": [0.1, 0, 0]}, "b": {"body": "hand"},
                      "axis": [0, 0, 1],
                      "limits": {"lower": -0.05, "upper": 0.12, "stiffness": 25.0, "damping": 0.005},
                      "torque": {"signal": "push"}, **stiff, **angular},
            "rail": {"type": "slider", "a": {"at": [0, 0.3, 0.1]}, "b": {"body": "cart"}, "axis": [1, 0, 0.1],
                     **stiff, **angular},
            "pull": {"type": "spring", "a": {"body": "hand", "at": [0.1, 0, 0]}, "b": {"body": "cart",
                     "at": [0, 0, 0]}, "stiffness": 30.0, "damping": 0.1, "length": 0.2},
            "rope": {"type": "cable", "a": {"body": "hand", "at": [0.1, 0, 0.01]}, "b": {"body": "drop",
                     "at": [0, 0, 0]}, "stiffness": 150.0, "damping": 0.2, "length": 0.17},
            "tether": {"type": "cable", "a": {"at": [0.5, 0.1, 0.1]}, "b": {"body": "drop", "at": [-0.1, 0, 0]},
                       "stiffness": 120.0, "length": 0.22},
            "knot": {"type": "ball", "a": {"body": "arm", "at": [0, 0.02, 0]}, "b": {"body": "net", "at": [0, 0, 0]},
                     "stiffness": 40.0, "damping": 0.1},
            "weld": {"type": "fixed", "a": {"body": "hand", "at": [0.02, 0, 0.03]}, "b": {"body": "lid"},
                     **stiff, **angular},
            "glue": {"type": "attachment", "nodes": "net", "where": {"nodes": [1, 2]}, "body": "lid",
                     "stiffness": 20.0, "damping": 0.05},
            "wind": {"type": "force", "on": {"body": "drop", "at": [0.05, 0, 0]}, "force": [0.1, 0.3, 0.2]},
            "twist": {"type": "torque", "body": "cart", "torque": [0.01, 0.0, 0.02]},
        },
    })  # fmt: skip
    built = scene.build()
    simulation = built.simulation
    return built.model, Simulation(simulation.system, simulation.start, stepper, n_steps, simulation.theta)
