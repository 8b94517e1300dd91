"""Texts about the contact of a scene: numbers that it leaves open, and steps that are too long for its impacts."""

from __future__ import annotations

import numpy as np

from add.bodies import RigidBody, TreeBody
from add.contact import BodyContact, MeshContact
from add.contact.impacts import ENOUGH_STEPS
from add.scene.build.built import BuiltScene
from add.scene.build.default_contact import DAMPING_RATIO, NUMBERS, RESTITUTION, STIFF, Touching, without_numbers
from add.scene.spec.links import strings_in
from add.scene.spec.scene import SceneSpec

#: Share of the thinnest part that an impact may move in a step without a warning.
FAST = 0.8


def said_numbers(scene: SceneSpec, built: BuiltScene) -> list[str]:
    """Return in words the numbers of contact that a scene leaves open, and the step that resolves its impacts.

    Parameters
    ----------
    scene, built : the scene as it is given, and as it was built
    """
    if not without_numbers(scene) or not any(built.model.term(kind) for kind in (BodyContact, MeshContact)):
        return []
    contact = built.scene.contact
    found = [(f"contact.{key}", getattr(contact, key)) for key in NUMBERS]
    for section in ("nodes", "mesh"):
        found += [(f"contact.{section}.{key}", getattr(getattr(contact, section), key, None)) for key in NUMBERS]
    text = ", ".join(f"{path} {value:.3g} {_unit(path, contact.stiffness_per)}" for path, value in found if value)
    rates = Touching(built.scene, built).rates()
    if not rates:
        return [f"by weight and size: {text}"]
    name, speed, rate = max(rates, key=lambda item: item[2])
    lasts = np.pi / rate / np.sqrt(1.0 - DAMPING_RATIO**2)
    dt = scene.time.dt
    framed = any(body.moves and body.has_frame and body.contact_points().radii.size for body in built.model.bodies)
    framed = framed and not contact.has_layer
    rebounds = f"; the heaviest body rebounds head on with {RESTITUTION:.1f} of its speed" if framed else ""
    return [
        f"by weight and size: {text}{rebounds}",
        f"an impact of '{name}' at {speed:.2g} m/s lasts {lasts:.2g} s or {lasts / dt:.2g} steps; time.dt = "
        f"{lasts / ENOUGH_STEPS:.1g} s resolves it",
    ]


def fast_impacts(built: BuiltScene) -> list[str]:
    """Return the free bodies and trees that move by most of their thinnest part in a step at their impact, in words."""
    scene = built.scene
    hard = scene.contact.friction_law in ("exact", "impulse")
    if hard or scene.time.substeps == "auto" or not built.model.obstacles:
        return []
    dt, joined = scene.time.dt, set(strings_in(scene.couplings))
    found = Touching(scene, built)
    movable = built.model.system.rotations
    free = {
        body.name
        for body in built.model.bodies
        if isinstance(body, RigidBody | TreeBody) and body.name not in joined
        and (isinstance(body, RigidBody) or built.model.system.dofs[body.name].start + 3 in movable)
    }  # fmt: skip
    falls = [
        (one, np.sqrt(one.speed**2 + 2.0 * found.gravity * one.fall)) for one in found.touching() if one.name in free
    ]
    needs = [(one.name, speed, one.thin) for one, speed in falls]
    needs = [(name, speed, thin) for name, speed, thin in needs if speed * dt > FAST * thin]
    if not needs:
        return []
    name, speed, thin = max(needs, key=lambda item: item[1] / item[2])
    others = f", and {len(needs) - 1} more bodies" if len(needs) > 1 else ""
    return [
        f"time.dt: an impact of '{name}' at {speed:.2g} m/s moves {speed * dt / thin:.2g} times its thinnest part in a "
        f"step{others}: its rebound is one of the step, and may gain energy; try {0.1 * thin / speed:.1g} s, or "
        "time.substeps 'auto'"
    ]


def _unit(path: str, per: str) -> str:
    key = path.rpartition(".")[2]
    if key in STIFF:
        per_area = "^3" if ".mesh." in path or per == "area" else ""
        return {"stiffness": "N/m", "damping": "N s/m"}[key] + per_area
    return "m"
