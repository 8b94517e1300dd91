"""Products with dr/dv on the way back, of families that form no matrix for them."""

from typing import Any

import numpy as np
import pytest
from support.places import SCENES

from add.compiled import walk
from add.compiled.equations import as_choices
from add.compiled.linear import add_sparse_product, add_transposed
from add.compiled.run import CompiledRun
from add.compiled.structure import layout_of
from add.compiled.walk import no_choices
from add.contact.body_family import KIND as BODIES, MESH_KIND as MESHES
from add.kernels.arena import OWN, Instant, Signals
from add.scene import load_scene, scene_from_dict
from add.simulation.run import Simulation
from add.terms.elastic import STRAINED, VISCOUS

SOFT = {
    "schema": "add-scene/1",
    "time": {"dt": 0.005, "steps": 30, "integrator": "bdf1"},
    "gravity": [0.3, 0, -9.8],
    "bodies": {
        name: {
            "type": "soft",
            "element": element,
            "mesh": {"shape": "box", "size": [0.1, 0.1, 0.1], "divisions": [2, 2, 2]},
            "position": [x, 0, 0.051],
            "angular_velocity": [0, 3, 5],
            "mean_dilatation": mean,
            "material": {"model": "neo-hookean", "density": 1000, "young": 2e4, "poisson": 0.4, "viscosity": 30,
                         "rayleigh_stiffness": 2e-3, "viscosity_exponent": 1.6},
        }
        for name, element, x, mean in (("mean", "hex8", 0.0, True), ("local", "tet4", 0.3, False))
    },
    "obstacles": {"floor": {"shape": "plane", "normal": [0, 0, 1], "point": [0, 0, 0]}},
    "contact": {"friction": 0.4, "stiffness": 1e3, "damping": 5},
}  # fmt: skip


def scene(name: str) -> Simulation:
    if name == "soft":
        return scene_from_dict(SOFT).build().simulation
    return load_scene(SCENES / f"{name}.json").build().simulation


@pytest.mark.parametrize(
    "name, steps, kinds",
    [
        ("soft", 10, (VISCOUS, BODIES)),
        ("cloth_on_block", 60, (STRAINED, MESHES)),
        ("three_frictions", 40, (BODIES,)),
        ("pile_in_bowl", 40, (MESHES,)),
    ],
)
def test_products_are_those_of_the_matrix(name: str, steps: int, kinds: tuple[Any, ...]) -> None:
    simulation, rng = scene(name), np.random.default_rng(1)
    packed = simulation.packed
    assert packed is not None, simulation.by_terms
    record = simulation.run(n_steps=steps).records[-1]
    run, n, theta = CompiledRun(packed), simulation.system.n, simulation.theta
    arrays, _ = run._common(record.decisions)
    choices = as_choices(record.decisions, no_choices(len(simulation.system.deciding)))
    v = record.kin.v + 0.1 * rng.normal(size=n)
    signals = Signals(np.zeros(0), np.zeros((len(packed.signals), 3), dtype=np.int64))
    at, lam = Instant(record.kin.t, record.kin.q, v, record.kin.a, theta, signals), rng.normal(size=n)
    for kind in kinds:
        found, wanted = np.zeros(theta.size + n), np.zeros(n)
        for k in (k for k, one in enumerate(packed.kinds) if one is kind):
            alone = arrays._replace(families=arrays.families.copy())
            alone.families[np.arange(len(packed.kinds)) != k, OWN] = -1
            parts = np.empty((3, layout_of(arrays).size[1]))
            walk.matrices(alone, at, np.zeros(0), choices, 0.0, parts[:, :0], parts)
            left = np.empty_like(parts)
            walk.matrices(alone, at, np.zeros(0), choices, 50.0, parts[:, :0], left)
            assert not left[1].any() and np.abs(left[0] - parts[0] - 50.0 * parts[1]).max() <= 1e-9 * np.abs(left).max()
            walk.parameters(alone, at, np.zeros(0), choices, parts[:, :0], lam, found)
            if packed.sparse:
                add_sparse_product(arrays, parts[1], lam, True, wanted)
            else:
                add_transposed(parts[1], n, lam, wanted)
        assert np.abs(wanted).max() > 0.0
        assert np.abs(found[theta.size :] - wanted).max() <= 1e-11 * np.abs(wanted).max()
