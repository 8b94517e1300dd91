"""Penalty contact of meshes against tables made with ipctk's pair sets and independent laws."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from support.reference_tables import table

from add.contact import FrictionLaw, NormalLaw
from add.contact.meshes import MeshContact
from add.contact.surfaces import ContactSurface, SurfacePart, one_side
from add.equations.kinematics import Kinematics, Weights
from add.equations.sites import NO_INDICES
from add.kernels.contact_pairs import FEATURE
from add.kernels.mesh_arrays import MOLLIFIED, points_of, unnumbered, weight_of

NO_EDGES, NO_FACES = np.zeros((0, 2), dtype=np.int64), np.zeros((0, 3), dtype=np.int64)


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


@pytest.mark.parametrize("sided", [False, True])
def test_no_set_of_pairs_pulls(sided: bool) -> None:
    """Ropes along each other at any small angle: rows with negative weights leave a force that parts them."""
    rng, least, negative = np.random.default_rng(2), [], 0
    x = np.column_stack([np.linspace(-1.0, 1.0, 5), np.zeros(5), np.zeros(5)])
    edges = np.column_stack([np.arange(4), np.arange(1, 5)])
    for k in range(40):
        angle, lift = (0.0 if k % 4 == 0 else 10.0 ** rng.uniform(-4.0, 0.0)), rng.uniform(0.01, 0.09)
        turned = x @ np.array([[np.cos(angle), np.sin(angle), 0], [-np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
        shift = np.array([rng.uniform(-0.3, 0.3), rng.uniform(-0.02, 0.02), lift])
        parts = [
            SurfacePart(places, NO_FACES, edges, 15 * i, np.arange(5), NO_INDICES, 0, 0.0)
            for i, places in enumerate((x, turned + shift))
        ]
        surface = ContactSurface.of(parts)
        surface = replace(surface, edge_areas=np.full(surface.n_edges, 0.3), vertex_areas=np.full(10, 0.3))
        sides = one_side(surface) if sided else None
        contact = MeshContact(surface, np.arange(6).reshape(1, 1, 6), np.array([6, 7]), FrictionLaw.NONE, sides=sides)
        theta = np.array([1e4, 0.0, 0.0, 0.0, 0.01, 0.0, 0.05, 0.05])
        q = np.concatenate([x.ravel(), (turned + shift).ravel()])
        kin = Kinematics(q, np.zeros(30), np.zeros(30), 0.0, 1)
        negative += int((contact.decide(kin, theta)[:, FEATURE] < 0).sum())
        assert contact.energy(kin, theta) > 0.0
        least.append(contact.forces(kin, theta)[15:].reshape(-1, 3)[:, 2].sum())
    assert min(least) > 0.0 and negative > 100


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


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_pairs_that_were_near_have_all_that_touch_later(case: str, alone: bool) -> None:
    """Bodies that met each other by nearly the margin, both or one alone, and skins that grew: the same pairs.

    Where they move by more than both margins, pairs are looked for again.
    """
    contact, kin, theta, _ = contact_of(case)
    if alone:  # a body that meets itself uses its own margin twice
        others = ~np.eye(len(contact.surface.meets), dtype=bool)
        contact = replace(contact, surface=replace(contact.surface, meets=contact.surface.meets & others))
    body, skin, nodes = contact.surface.body, theta[6], contact.surface.carrier // 3
    x = kin.q.reshape(-1, 3)[nodes]
    side = np.where(body == 0, 0.0 if alone else -0.5, 1.0 if alone else 0.5)[:, None]
    away = x[body != 0].mean(axis=0) - x[body == 0].mean(axis=0)
    away /= np.linalg.norm(away)

    def at(distance: float) -> Kinematics:
        q = np.empty_like(x)
        q[nodes] = x + distance * side * away
        return replace(kin, q=q.ravel())

    thicker = theta.copy()
    thicker[6] *= 1.1
    more = 0
    for begin in np.linspace(1.0, 3.0, 9) * skin:
        for way in (1.75 * skin, 2.5 * skin):
            apart = replace(contact)  # nothing is near yet
            before = apart.decide(at(begin), theta)
            (near,) = apart._near
            rows = apart.decide(at(begin - way), thicker)
            assert (apart._near[0] is near) == (way < 2.0 * skin)
            np.testing.assert_array_equal(rows, replace(contact).decide(at(begin - way), thicker))
            more += len(set(rows[:, 0].tolist()) - set(before[:, 0].tolist()))
    assert more > 20


def test_pairs_are_looked_for_further_around_what_moves_on() -> None:
    """A ball that moves 1.5 skins a step is soon looked around for several steps, up to a share of its edges."""
    contact, kin, theta, _ = contact_of("spheres")
    nodes = contact.surface.carrier[contact.surface.body == 1]
    found, q = set(), kin.q.copy()
    for _ in range(12):
        q[nodes] += 1.5 * theta[6]
        moved = replace(kin, q=q.copy())
        rows = contact.decide(moved, theta)
        np.testing.assert_array_equal(rows, replace(contact).decide(moved, theta))
        found.add(id(contact._near[0].x))
        (near,) = contact._near
        assert near.wide[1] - theta[6] <= max(theta[6], contact._strides[1]) * (1.0 + 1e-12)
    assert len(found) < 7 and near.wide[0] == 2.0 * theta[6]  # the other one stays


def _key(name: str, ids: list[int]) -> tuple:
    if name == "vv":
        return tuple(sorted(ids))
    if name == "ee":
        return tuple(sorted([tuple(sorted(ids[:2])), tuple(sorted(ids[2:]))]))
    return ids[0], tuple(sorted(ids[1:]))
