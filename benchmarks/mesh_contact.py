"""Cost of contact between meshes: `python -m benchmarks.mesh_contact`.

Two sheets of springs lie on each other everywhere, with cells that do not fit. Once the kernels of contact beside the
potentials of `ipctk` on the same pairs, once whole steps and the share of contact in them. One thread, one run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, final

import numpy as np

import add.contact.meshes as meshes
from add.contact import MeshContact
from add.contact.limits import CollisionLimit, toolkit
from add.equations.kinematics import Kinematics, Weights
from add.linalg import one_blas_thread
from add.scene import scene_from_dict
from add.scene.build.built import BuiltScene
from benchmarks.timing import least

#: Cells along the edges of either sheet: 1 k, 10 k and 50 k faces.
CELLS = (16, 50, 112)
#: Steps of a run; the last ones count.
STEPS, COUNTED = 6, 3


def two_sheets(n: int) -> BuiltScene:
    """Return a sheet of n x n cells that lies on one that is held; skins of 0.6 of a cell, in which it is 0.3 deep."""
    cell = 1.0 / n
    reach = 0.6 * cell
    mesh = {"shape": "sheet", "size": [1.0, 1.0], "divisions": [n, n]}
    sheet = {"type": "mass-spring", "mass": 1.0, "stiffness": 100.0, "damping": 0.1}
    other = mesh | {"size": [1.0 + 2.3 * cell, 1.0 + 2.3 * cell], "divisions": [n + 1, n + 1]}
    pressure = 9.81 / (0.3 * reach)
    return scene_from_dict(
        {
            "schema": "add-scene/1",
            "time": {"dt": 0.002, "steps": STEPS, "integrator": "bdf1"},
            "bodies": {
                "low": sheet | {"mesh": other, "pins": [{"where": {"all": True}}]},
                "up": sheet | {"mesh": mesh, "position": [0.0031, 0.0017, 0.72 * reach]},
            },
            "contact": {"friction": 0.3, "mesh": {"thickness": reach, "stiffness": pressure, "onset": 0.02 * reach}},
        }
    ).build()


@final
class Shares:
    """Seconds in the parts of contact."""

    def __init__(self) -> None:
        self.seconds = {"detection": 0.0, "force": 0.0, "jacobian": 0.0, "limit": 0.0}

    def timed(self, part: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return the call with a clock around it."""

        def run(*arguments: Any, **named: Any) -> Any:
            begin = time.process_time()
            try:
                return call(*arguments, **named)
            finally:
                self.seconds[part] += time.process_time() - begin

        return run


@contextmanager
def clocked() -> Iterator[Shares]:
    """Put clocks around detection, forces, their derivatives and the step limit."""
    shares = Shares()
    places: list[tuple[Any, str, str]] = [
        (meshes, "near_pairs", "detection"),
        (meshes.kernel, "decided_mesh_contact_force", "force"),
        (meshes, "mesh_contact_jacobian", "jacobian"),
        (CollisionLimit, "share", "limit"),
    ]
    before = [getattr(owner, name) for owner, name, _ in places]
    for (owner, name, part), call in zip(places, before, strict=True):
        setattr(owner, name, shares.timed(part, call))
    try:
        yield shares
    finally:
        for (owner, name, _), call in zip(places, before, strict=True):
            setattr(owner, name, call)


def steps(built: BuiltScene) -> dict[str, float]:
    """Return seconds a step, the share of contact by parts, pairs that touch and Newton's iterations."""
    (term,) = built.model.term(MeshContact)
    simulation, number = built.simulation, built.simulation.system.deciding.index(term)
    assembler = simulation.assembler()
    assembler.compiled = None  # the clocks are on the terms
    state = simulation.state(*built.model.initial.evaluate(built.theta))
    iterations, touching, seconds, total = 0, 0, 0.0, dict.fromkeys(Shares().seconds, 0.0)
    for k in range(STEPS):
        with clocked() as shares:
            begin = time.process_time()
            state, record = simulation.step(state, assembler=assembler)
            spent = time.process_time() - begin
        if k >= STEPS - COUNTED:
            seconds += spent
            iterations += record.report.iterations
            touching = term.describe(record.decisions[number])["touching"]
            total = {part: total[part] + shares.seconds[part] for part in total}
    out = {"touching": touching, "step": seconds / COUNTED, "iterations": iterations / COUNTED}
    return out | {part: value / seconds for part, value in total.items()}


def pairs(built: BuiltScene) -> dict[str, float]:
    """Return milliseconds of the kernels and of `ipctk`, both on the pairs that count vertices and edges alike."""
    (sided,) = built.model.term(MeshContact)
    term = replace(sided, sides=None)
    q, v = built.model.initial.evaluate(built.theta)
    kin = Kinematics(q, v, np.zeros_like(v), 0.0, 0)
    surface, theta, r = term.surface, built.theta, np.zeros_like(q)
    decision = term.decided_residual(kin, theta, r)
    branch = term.on_branch(decision)
    entries = branch.pattern()[0].size
    data, slots = np.zeros(entries), np.arange(entries)
    x = np.asfortranarray(surface.places(q, theta))
    reach = 2.0 * float(theta[term.thickness[0]])
    kit = toolkit()
    mesh = kit.CollisionMesh(
        np.asfortranarray(surface.rest), np.asfortranarray(surface.edges, np.int32),
        np.asfortranarray(surface.faces, np.int32),
    )  # fmt: skip
    mesh.can_collide = kit.make_vertex_patches_filter(surface.body.astype(np.int32))
    collisions = kit.NormalCollisions()
    collisions.use_area_weighting = True
    collisions.collision_set_type = kit.NormalCollisions.IMPROVED_MAX_APPROX
    found = kit.Candidates()
    found.build(mesh, x, 0.5 * reach, kit.LBVH())
    collisions.build(found, mesh, x, reach)
    potential = kit.BarrierPotential(reach, 1.0)

    def timed(call: Callable[[], object]) -> float:
        return 1e3 * least(call, 2.0, 20)

    return {
        "rows": decision.shape[0],
        "force": timed(lambda: term.decided_residual(kin, theta, r)),
        "jacobian": timed(lambda: branch.jacobian(kin, theta, Weights(1.0, 500.0, 0.0), data, slots)),
        "ipctk rows": len(collisions),
        "ipctk set": timed(lambda: collisions.build(found, mesh, x, reach)),
        "ipctk gradient": timed(lambda: potential.gradient(collisions, mesh, x)),
        "ipctk hessian": timed(lambda: potential.hessian(collisions, mesh, x)),
    }


def main() -> None:
    """Print both tables."""
    with one_blas_thread():
        two_sheets(4).simulation.run()  # compiles
        rows = []
        for n in CELLS:
            built = two_sheets(n)
            faces = built.model.term(MeshContact)[0].surface.n_faces
            rows.append((faces, pairs(built), steps(built)))
    print(
        "| faces | rows | force, decided [ms] | Jacobian [ms] | ipctk: rows | set [ms] | gradient [ms] | Hessian [ms] |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for faces, row, _ in rows:
        own = f"{row['rows']:.0f} | {row['force']:.1f} | {row['jacobian']:.1f}"
        kit = " | ".join(f"{row[f'ipctk {key}']:.1f}" for key in ("set", "gradient", "hessian"))
        print(f"| {faces} | {own} | {row['ipctk rows']:.0f} | {kit} |")
    print("| faces | touching | step [ms] | iterations | detection | force | Jacobian | limit | contact [%] |")
    print("|---|---|---|---|---|---|---|---|---|")
    parts = ("detection", "force", "jacobian", "limit")
    for faces, _, row in rows:
        shares = " | ".join(f"{100.0 * row[part]:.1f}" for part in parts)
        whole = 100.0 * sum(row[part] for part in parts)
        step = f"{1e3 * row['step']:.0f} | {row['iterations']:.1f}"
        print(f"| {faces} | {row['touching']:.0f} | {step} | {shares} | {whole:.1f} |")
    touching, seconds = (np.log([row[key] for _, _, row in rows]) for key in ("touching", "step"))
    contact = np.log([row["step"] * sum(row[part] for part in parts) / row["iterations"] for _, _, row in rows])
    print(f"slope over pairs: step {np.polyfit(touching, seconds, 1)[0]:.2f}, contact an iteration "
          f"{np.polyfit(touching, contact, 1)[0]:.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
