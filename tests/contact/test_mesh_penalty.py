"""Penalty contact of meshes against tables made with ipctk's pair sets and independent laws."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from support.reference_tables import table

from add.contact import FrictionLaw, NormalLaw
from add.contact.meshes import MeshContact
from add.contact.surfaces import ContactSurface, SurfacePart
from add.equations.kinematics import Kinematics, Weights
from add.equations.site_gathering import NO_INDICES
from add.kernels.mesh_arrays import MOLLIFIED, points_of, unnumbered, weight_of

NO_EDGES = np.zeros((0, 2), dtype=np.int64)


def contact_of(case: str) -> tuple[MeshContact, Kinematics, np.ndarray, dict[str, np.ndarray]]:
    """Return the contact of a case of the table, the state and theta = k_n, 0, 0, 0, onset, 0, half-thickness."""
    data = {key: table("penalty.npz")[f"{case}/{key}"] for key in _KEYS}
    edges, faces, n = data["E"].astype(np.int64), data["F"].astype(np.int64), len(data["V"])
    _, label = sp.csgraph.connected_components(sp.coo_array((np.ones(len(edges)), edges.T), shape=(n, n)))
    parts = []
    for body in range(label.max() + 1):
        nodes = np.flatnonzero(label == body)
        own = np.searchsorted(nodes, faces[label[faces[:, 0]] == body])
        parts.append(SurfacePart(data["rest"][nodes], own, NO_EDGES, 0, nodes, NO_INDICES, 0, 0.0, True))
    surface = ContactSurface.of(parts)
    surface = ContactSurface(**{**surface.__dict__, "rest_factor": 0.0})  # the table has no such rule
    theta = np.array([data["k_n"], 0.0, 0.0, 0.0, data["onset"], 0.0, data["r"] / 2.0], dtype=float)
    contact = MeshContact(
        surface, np.arange(6).reshape(1, 1, 6), np.full(len(parts), 6), FrictionLaw.NONE
    )  # fmt: skip
    q = data["V"].ravel().astype(float)
    return contact, Kinematics(q, np.zeros_like(q), np.zeros_like(q), 0.0, 1), theta, data


_KEYS = (
    "V", "rest", "F", "E", "r", "onset", "k_n", "kind", "ids", "weight", "mollified", "distance", "value", "gradient",
    "H_row", "H_col", "H_val",
)  # fmt: skip
CASES = ("spheres", "cloths", "cubes")


@pytest.mark.parametrize("case", CASES)
def test_value_gradient_and_hessian(case: str) -> None:
    contact, kin, theta, data = contact_of(case)
    r, n = np.zeros(kin.q.size), kin.q.size
    decision = contact.decided_residual(kin, theta, r)
    assert abs(contact.energy(kin, theta) - data["value"]) <= 1e-12 * data["value"]
    assert np.abs(r - data["gradient"]).max() <= 1e-12 * np.abs(r).max()
    branch = contact.on_branch(decision)
    rows, cols = branch.pattern()
    values = np.zeros(rows.size)
    branch.jacobian(kin, theta, Weights(1.0, 0.0, 0.0), values, np.arange(rows.size))
    found = sp.coo_array((values, (rows, cols)), shape=(n, n)).toarray()
    wanted = sp.coo_array((data["H_val"], (data["H_row"], data["H_col"])), shape=(n, n)).toarray()
    assert np.abs(found - wanted).max() <= 1e-12 * np.abs(wanted).max()
    force, place = r.reshape(-1, 3), kin.q.reshape(-1, 3)
    assert np.abs(force.sum(axis=0)).max() <= 1e-12 * np.abs(force).sum()
    assert np.abs(np.cross(place, force).sum(axis=0)).max() <= 1e-12 * np.abs(force).sum()


def test_energy_and_force_of_the_wall() -> None:
    """By the wall's formula on the table's own pairs, weights and distances."""
    contact, kin, theta, data = contact_of("cloths")
    walled = replace(contact, normal_law=NormalLaw.PENALTY_WALL)
    r, weight, x = float(data["r"]), data["weight"], 1.0 - 2.0 * data["distance"] / data["r"]
    near = x > 0.0
    assert near.sum() > 50 and not data["mollified"].any()
    wanted = theta[0] * float((weight * -0.25 * r * r * x**3 * np.log1p(-x))[near].sum())
    added = walled.energy(kin, theta) - contact.energy(kin, theta)
    assert wanted > 1e-6 * data["value"] and abs(added - wanted) <= 1e-12 * data["value"]
    # The force is its derivative, along the force itself.
    force = walled.forces(kin, theta)
    way = 1e-6 * r * force / np.abs(force).max()
    before, after = (walled.energy(replace(kin, q=kin.q + sign * way), theta) for sign in (-1.0, 1.0))
    assert before - after == pytest.approx(2.0 * force @ way, rel=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_sets_and_weights(case: str) -> None:
    contact, kin, theta, data = contact_of(case)
    arrays, perm = contact.arrays, contact.surface.carrier // 3
    found: dict[tuple, float] = {}
    p = np.zeros(4, dtype=np.int64)
    names = {0: "fv", 1: "ev", 2: "vv", 3: "ee", 4: "ev", 5: "ev"}
    for pair, feature, bits in contact.decide(kin, theta):
        kind, i, j = unnumbered(pair, contact.surface.n_points, contact.surface.n_edges, contact.surface.n_faces)
        n = points_of(kind, i, j, arrays, p)
        region, mollified = feature & 15, bool(bits & MOLLIFIED)
        ids, name = [int(k) for k in perm[p[:n]]], names[kind]
        if kind == 3 and not mollified and region in (8, 9, 10, 11):  # one end and the other edge
            ids, name = ([ids[region - 8], *ids[2:]] if region < 10 else [ids[region - 8], *ids[:2]]), "ev"
        elif kind == 3 and not mollified and region >= 12:
            ids, name = [ids[(region - 12) // 2], ids[2 + (region - 12) % 2]], "vv"
        elif kind == 4 and region >= 4:
            ids, name = [ids[0], ids[region - 3]], "vv"
        key = (name, _key(name, ids))
        found[key] = found.get(key, 0.0) + weight_of(kind, i, j, feature, arrays)
    wanted: dict[tuple, float] = {}
    for name, ids, weight in zip(data["kind"], data["ids"], data["weight"], strict=True):
        key = (str(name), _key(str(name), [int(k) for k in ids if k >= 0]))
        wanted[key] = wanted.get(key, 0.0) + float(weight)
    largest = max(wanted.values())
    for key in {*found, *wanted}:
        assert abs(found.get(key, 0.0) - wanted.get(key, 0.0)) <= 1e-12 * largest, key
    if case == "cloths":
        assert min(wanted.values()) < -1e-3 * largest


def _key(name: str, ids: list[int]) -> tuple:
    if name == "vv":
        return tuple(sorted(ids))
    if name == "ee":
        return tuple(sorted([tuple(sorted(ids[:2])), tuple(sorted(ids[2:]))]))
    return ids[0], tuple(sorted(ids[1:]))
