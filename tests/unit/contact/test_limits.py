"""Continuous collision detection: against exact times of impact, and no way leads through a surface."""

import numpy as np
import pytest
from support.crossings import crossing_pairs
from support.places import SPECS
from support.surfaces import joined, sheet

from add.contact.crossings import Candidates, Primitives, candidates, crossings, refuse_tangled
from add.contact.limits import FARTHEST, MOST_TURN, CollisionLimit, collision_mesh, free_share
from add.contact.surfaces import ContactSurface, SurfacePart
from add.equations.sites import NO_INDICES
from add.errors import InputError
from add.kernels.primitives import may_collide

REFERENCE = SPECS / "deformables/reference/ccd.npz"
NONE = np.zeros((0, 2), dtype=np.int64)


def share_of_all(primitives, x0, x1):
    """Return whether no pair comes near, and the free share of the ways of those that do."""
    near = candidates(primitives, x0, x1)
    of_vf, of_ee = may_collide(near.vf, near.ee, primitives.edges, primitives.faces, x0, x1, 0.0)
    mesh = collision_mesh(primitives.body.size, primitives.edges, primitives.faces)
    pairs = Candidates(near.vf[of_vf], near.ee[of_ee])
    return not of_vf.any() and not of_ee.any(), free_share(mesh, pairs, x0, x1)


def pair(kind):
    """Return a vertex and a face, or two edges, of two bodies that meet."""
    meets = ~np.eye(2, dtype=bool)
    if kind == "vf":
        edges, faces, body = [[1, 2], [1, 3], [2, 3]], [[1, 2, 3]], [0, 1, 1, 1]
    else:
        edges, faces, body = [[0, 1], [2, 3]], np.zeros((0, 3)), [0, 0, 1, 1]
    arrays = (np.asarray(part, dtype=np.int64) for part in (edges, faces, body))
    edges, faces, body = arrays
    return Primitives(edges, faces, np.ones(len(edges), dtype=bool), body, meets)


@pytest.mark.skipif(not REFERENCE.exists(), reason="shared/specs with the times of impact is not there")
def test_no_time_is_later_than_the_exact_one():
    table = np.load(REFERENCE)
    early, alarms, skipped = [], 0, 0
    for kind, x0, x1, exact, own in zip(*(table[k] for k in ("kind", "x0", "x1", "toi", "additive")), strict=True):
        primitives = pair(str(kind))
        clear, share = share_of_all(primitives, x0, x1)
        if np.isnan(exact):
            alarms += share < 1.0
            skipped += clear
            assert share == 1.0 or not np.isnan(own), "an alarm that the toolkit did not give"
        else:
            assert not clear and 0.0 <= share <= exact
            early.append(exact - share)
    assert len(early) > 30 and skipped > 5
    assert alarms <= 5 and max(early) < 0.25


@pytest.mark.parametrize(("height", "least", "most"), [(1e-3, 1.0, 1.0), (1e-7, 0.01, 0.1)])
def test_a_way_along_a_surface_ends_where_it_takes_too_many_steps(height, least, most):
    """Each step is no longer than the distance; the toolkit's own limit takes two seconds."""
    x0 = np.array([[0.2, 0.2, 0.2 + height], [0.0, 0.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    x1 = x0 + np.outer([1, 0, 0, 0], [0.2, 0.2, 0.2])
    assert least <= share_of_all(pair("vf"), x0, x1)[1] <= most


def test_crossings_are_those_of_the_oracle():
    rng = np.random.default_rng(1)
    x, primitives = joined([sheet(8, wave=0.1), sheet(7, (0.05, 0.02, 0.01), wave=0.1)], itself=[0])
    x = x + 0.02 * rng.normal(size=x.shape)
    found = crossings(primitives, x)
    faces = primitives.faces
    expected = crossing_pairs(x, faces, edges=primitives.edges)
    own = primitives.body[primitives.edges[expected[:, 0], 0]], primitives.body[faces[expected[:, 1], 0]]
    expected = expected[primitives.meets[own]]
    assert len(found) > 20
    np.testing.assert_array_equal(found, expected[np.lexsort(expected.T[::-1])])


def test_no_free_way_leads_through():
    """Random ways of two sheets: the ends of what is free do not cross, those of whole ways often do."""
    rng = np.random.default_rng(5)
    x0, primitives = joined([sheet(5), sheet(5, (0.07, 0.03, 0.3))])
    crossed = shortened = 0
    for _ in range(30):
        x1 = x0 + rng.normal(size=3) * 0.1 + 0.15 * rng.normal(size=x0.shape)
        _, share = share_of_all(primitives, x0, x1)
        apart = np.isin(primitives.body[primitives.faces[:, 0]], [0])
        for t in (0.5 * share, share):
            x = (1 - t) * x0 + t * x1
            assert not len(crossing_pairs(x, primitives.faces[apart], primitives.faces[~apart]))
            assert not len(crossing_pairs(x, primitives.faces[~apart], primitives.faces[apart]))
        crossed += bool(len(crossing_pairs(x1, primitives.faces[apart], primitives.faces[~apart])))
        shortened += share < 1.0
    assert crossed > 10 and shortened >= crossed


def surfaces(parts):
    """Return the surface of parts (points, faces, carrier, nodes)."""
    return ContactSurface.of(
        [SurfacePart(x, f, NONE, carrier, nodes, NO_INDICES, 0, 0.01) for x, f, carrier, nodes in parts]
    )


def test_a_vertex_that_moves_far_stops_before_the_sheet(monkeypatch):
    flat, faces = sheet(4, wave=0.0)
    ball = np.array([[0.4, 0.4, 0.5], [0.6, 0.4, 0.5], [0.4, 0.6, 0.5]])
    n = len(flat)
    surface = surfaces([(flat, faces, 0, np.arange(n)), (ball, np.array([[0, 1, 2]]), 3 * n, np.arange(3))])
    limit, theta = CollisionLimit(surface), np.zeros(3)
    q0 = np.concatenate([flat.ravel(), ball.ravel()])
    q1 = q0.copy()
    q1[3 * n + 2 :: 3] -= 10.0
    assert 0.5 * 0.05 <= limit.share(q0, q1, theta) < 0.05
    q1[3 * n + 2 :: 3] += 20.0
    assert limit.share(q0, q1, theta) == 1.0
    # Of a way beyond all measure the beginning alone is looked at, which is what takes time.
    ends = []
    monkeypatch.setattr("add.contact.limits.free_share", lambda *given: ends.append(given[3]) or free_share(*given))
    q1[3 * n + 2 :: 3] = -1e22
    assert 0.5 * 0.5 <= 1e22 * limit.share(q0, q1, theta) < 0.5
    assert len(ends) == 1 and np.abs(ends[0]).max() < 2.0 * FARTHEST


def test_pairs_that_are_kept_bound_ways_as_all_pairs_do():
    """Random steps of three bodies, one of which stands still: what was near before finds the same shares."""
    rng = np.random.default_rng(8)
    parts = [sheet(4, (0.0, 0.0, 0.25)), sheet(4, (0.07, 0.03, 0.12)), sheet(4, (0.03, 0.06, -0.1))]
    begins = [-1, 0, 3 * len(parts[1][0])]
    nodes = [None, *(np.arange(len(x)) for x, _ in parts[1:])]
    surface = surfaces([(*part, begin, own) for part, begin, own in zip(parts, begins, nodes, strict=True)])
    limit, theta = CollisionLimit(surface), np.zeros(3)
    kept = shortened = 0
    for run in range(12):
        q = np.concatenate([parts[1][0].ravel(), parts[2][0].ravel()])
        for _ in range(6):
            aim = q.copy()
            aim[q.size // 2 :] += np.tile(rng.normal(size=3) * 0.02 + [0.0, 0.0, 0.07 * (run % 2)], q.size // 6)
            aim[: q.size // 2] -= np.tile([0.0, 0.0, 0.07 * (run % 2)], q.size // 6)
            before, share = limit._near[:], limit.share(q, aim, theta)
            assert share == CollisionLimit(surface).share(q, aim, theta)
            kept += bool(before) and before[0] is limit._near[0]
            shortened += share < 1.0
            q += 0.9 * share * (aim - q)
    assert kept > 20 and shortened > 10


def test_a_rod_that_turns_stops_before_the_wall():
    """A blade turns towards a sheet: every shortened way is tested again on its own chord."""
    flat, faces = sheet(4, (-0.5, -0.5, 0.0), wave=0.0)
    flat = 4.0 * flat
    blade = np.array([[0.0, -0.1, 0.0], [0.0, 0.1, 0.0], [1.0, 0.0, 0.0]])
    n = len(flat)
    surface = surfaces([(flat, faces, -1, None), (blade, np.array([[0, 1, 2]]), 0, None)])
    limit, theta = CollisionLimit(surface), np.zeros(3)
    q = np.array([0.0, 0.0, 0.05, 0.0, 0.0, 0.0])
    for _ in range(5):
        aim = q + np.array([0, 0, 0, 0, 0.2, 0])
        share = limit.share(q, aim, theta)
        q = q + share * (aim - q)
        x = surface.places(q, theta)
        assert not len(crossing_pairs(x, surface.faces[-1:], surface.faces[:-1]))
        assert not len(crossing_pairs(x, surface.faces[:-1], surface.faces[-1:]))
    low = surface.places(q, theta)[n:, 2].min()
    assert 0.0 < low < 0.005


def test_no_trial_turns_far():
    blade = np.array([[0.0, -0.1, 0.0], [0.0, 0.1, 0.0], [1.0, 0.0, 0.0]])
    surface = surfaces([(blade + 9.0, np.array([[0, 1, 2]]), -1, None), (blade, np.array([[0, 1, 2]]), 0, None)])
    q1 = np.array([0.0, 0.0, 0.0, 0.0, 1.2, 0.0])
    assert CollisionLimit(surface).share(np.zeros(6), q1, np.zeros(3)) == pytest.approx(MOST_TURN / 1.2)


def test_a_tangled_start_is_refused_by_name():
    x, primitives = joined([sheet(4, wave=0.0), sheet(4, (0.1, 0.1, 0.0), wave=0.4)])
    with pytest.raises(
        InputError, match=r"'cloth' with 'flag'.*edge \d+-\d+ of '(cloth|flag)' and face .* and \d+ more"
    ):
        refuse_tangled(primitives, x, ["flag", "cloth"])
    refuse_tangled(primitives, x + np.where(primitives.body[:, None] == 1, 3.0, 0.0), ["flag", "cloth"])


BOX_FACES = np.array(
    [[0, 2, 1], [0, 3, 2], [4, 5, 6], [4, 6, 7], [0, 1, 5], [0, 5, 4], [1, 2, 6], [1, 6, 5], [2, 3, 7], [2, 7, 6],
     [3, 0, 4], [3, 4, 7]]
)  # fmt: skip
BOX = np.array([[x, y, z] for z in (0, 1) for x, y in ((0, 0), (1, 0), (1, 1), (0, 1))], dtype=float)


@pytest.mark.parametrize(
    ("shift", "size", "overlap"),
    [
        ((0.5, 0, 0), 1.0, True),
        ((0, 0, 0), 1.0, True),
        ((0, 0.25, 0), 0.5, True),
        ((1.0, 0, 0), 1.0, False),
        ((1.0, 0.5, 0.2), 1.0, False),
        ((0, 0, 1.0), 0.5, False),
        ((0.25, 0.25, 0.25), 0.5, False),
    ],
    ids=["shifted", "equal", "smaller in a corner", "side by side", "beside", "on top", "as in a room"],
)
def test_boxes_in_the_same_planes_overlap(shift, size, overlap):
    """No edge crosses a face there. A body that is wholly inside is left alone."""
    x, body = np.concatenate([BOX, size * BOX + shift]), np.repeat([0, 1], 8)
    faces = np.concatenate([BOX_FACES, BOX_FACES + 8])
    edges = np.unique(np.sort(faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1), axis=0)
    primitives = Primitives(edges, faces, np.ones(len(edges), dtype=bool), body, ~np.eye(2, dtype=bool))
    assert not crossings(primitives, x).size
    if not overlap:
        refuse_tangled(primitives, x, ["a", "b"])
        return
    with pytest.raises(InputError, match=r"overlap at the start: '[ab]' and '[ab]'") as caught:
        refuse_tangled(primitives, x, ["a", "b"])
    assert caught.value.place == "bodies"
