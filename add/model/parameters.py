"""The names of everything in theta."""

from __future__ import annotations

from collections.abc import Sequence

from add.bodies import Block, Body
from add.contact import NormalLaw
from add.equations.layout import ParameterLayout
from add.model.mesh_terms import mesh_blocks
from add.model.obstacles import ContactModel, Obstacle


def parameter_layout(
    bodies: Sequence[Body], obstacles: Sequence[Obstacle], contact: ContactModel, extra: Sequence[Block] = ()
) -> ParameterLayout:
    """Return the layout of theta; ``extra`` blocks come last."""
    blocks: list[Block] = [("gravity", (3,), "m/s^2")]
    blocks += [block for body in bodies for block in body.parameters()]
    # A signal that drives several things has one block.
    drives: dict[str, Block] = {}
    for drive, unit in (signal for body in bodies for signal in body.signals()):
        drives.setdefault(drive.parameter, (drive.parameter, (drive.signal.n_rows, 3), unit))
    blocks += drives.values()
    shapes = [*(obstacle.name for obstacle in obstacles), *dict.fromkeys(body.name for body in bodies if body.shapes)]
    per = "/m^2" if contact.per_area else ""
    for pair in contact_pairs([body.name for body in bodies], shapes, contact):
        blocks += [
            (f"{pair}.k_n", (), f"N/m{per}"),
            (f"{pair}.k_d", (), f"N s/m{per}"),
            (f"{pair}.k_t", (), f"N s/m{per}"),
            (f"{pair}.c_f", (), "-"),
        ]
        if contact.normal_law is not NormalLaw.PENALTY:
            blocks.append((f"{pair}.thickness", (), "m"))
        blocks += contact.curve.blocks(pair, per)
        if contact.couples:
            blocks += [(f"{pair}.c_t", (), "m"), (f"{pair}.c_r", (), "m"), (f"{pair}.w_0", (), "rad/s")]
    blocks += mesh_blocks(bodies, contact)
    known = {name for name, _, _ in blocks}
    more = {block[0]: block for block in extra if block[0] not in known}
    return ParameterLayout([*blocks, *more.values()])


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
