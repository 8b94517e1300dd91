"""The names of everything in theta."""

from __future__ import annotations

from collections.abc import Sequence

from add.equations.layout import ParameterLayout
from add.equations.signals import SignalParameter
from add.model.bodies import NodalBody, ParticleBody, RigidBody, SoftBody
from add.model.obstacles import ContactModel

#: Name, shape and unit of a block of theta.
Block = tuple[str, tuple[int, ...], str]

SOFT_SCALARS = (
    ("density", "kg/m^3"),
    ("viscosity", "Pa s"),
    ("rayleigh_mass", "1/s"),
    ("rayleigh_stiffness", "s"),
)
PARTICLE_SCALARS = (("mass", "kg"), ("rayleigh_mass", "1/s"))
SPRING_SCALARS = (("stiffness", "N/m"), ("damping", "N s/m"))
POSE_VECTORS = (("position", "m"), ("orientation", "rad"), ("velocity", "m/s"), ("angular_velocity", "rad/s"))


def _drives(soft: Sequence[SoftBody], particles: Sequence[ParticleBody], rigid: Sequence[RigidBody]) -> list[Block]:
    """Return the coefficients of every signal, once each."""
    drives: list[tuple[SignalParameter, str]] = []
    nodal: list[NodalBody] = [*soft, *particles]
    for body in nodal:
        drives += [(pin.motion, "m") for pin in body.pins if pin.motion]
        drives += [(load.force, "N") for load in body.loads]
    drives += [(anchor.place, "m") for item in soft for anchor in item.anchors]
    for solid in rigid:
        drives += [(solid.translation, "m")] if solid.translation else []
        drives += [(solid.rotation, "rad")] if solid.rotation else []
    found: dict[str, Block] = {}
    for drive, unit in drives:
        found.setdefault(drive.parameter, (drive.parameter, (drive.signal.n_rows, 3), unit))
    return list(found.values())


def parameter_layout(
    soft: Sequence[SoftBody],
    particles: Sequence[ParticleBody],
    rigid: Sequence[RigidBody],
    shapes: Sequence[str],
    contact: ContactModel,
    extra: Sequence[Block] = (),
) -> ParameterLayout:
    """Return the layout of theta; ``shapes`` names what bodies can meet, ``extra`` blocks come last."""
    blocks: list[Block] = [("gravity", (3,), "m/s^2")]
    for body in soft:
        moduli = [(modulus.key, modulus.unit) for modulus in body.law.parameters]
        blocks += [(f"bodies.{body.name}.{key}", (), unit) for key, unit in (*moduli, *SOFT_SCALARS)]
        blocks += [(f"bodies.{body.name}.{key}", (3,), unit) for key, unit in POSE_VECTORS]
        blocks += [(mass.parameter, (), "kg") for mass in body.masses]
    for sheet in particles:
        at = f"bodies.{sheet.name}"
        if not sheet.massless:
            blocks += [(f"{at}.{key}", (), unit) for key, unit in PARTICLE_SCALARS]
        if sheet.edges.size:
            blocks += [(f"{at}.{key}", (), unit) for key, unit in SPRING_SCALARS]
            blocks += [(f"{at}.lengths", (sheet.edges.shape[0],), "m")]
        blocks += [(f"{at}.{key}", (3,), unit) for key, unit in POSE_VECTORS]
    for solid in rigid:
        at = f"bodies.{solid.name}"
        if not solid.kinematic:
            blocks += [(f"{at}.mass", (), "kg"), (f"{at}.inertia", (6,), "kg m^2"), (f"{at}.centre", (3,), "m")]
        blocks += [(f"{at}.{key}", (3,), unit) for key, unit in POSE_VECTORS]
    blocks += _drives(soft, particles, rigid)
    names = [*(body.name for body in soft), *(body.name for body in particles), *(body.name for body in rigid)]
    per = "/m^2" if contact.per_area else ""
    for pair in contact_pairs(names, shapes, contact):
        blocks += [
            (f"{pair}.k_n", (), f"N/m{per}"),
            (f"{pair}.k_d", (), f"N s/m{per}"),
            (f"{pair}.k_t", (), f"N s/m{per}"),
            (f"{pair}.c_f", (), "-"),
        ]
    known = {name for name, _, _ in blocks}
    return ParameterLayout([*blocks, *(block for block in extra if block[0] not in known)])


def contact_pairs(bodies: Sequence[str], shapes: Sequence[str], contact: ContactModel) -> list[str]:
    """Return the names of the blocks of two contact classes that a body and the shape of another are of."""
    members: dict[str, set[str]] = {}
    for name in shapes:
        members.setdefault(contact.class_of(name), set()).add(name)
    out: dict[str, None] = {}
    for body in bodies:
        for name, owners in members.items():
            if len(owners) > 1 or body not in owners:
                out[f"contact.{contact.class_of(body)}.{name}"] = None
    return list(out)
