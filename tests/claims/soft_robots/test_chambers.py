"""Chambers of scenes: inflated spheres against closed forms, gradients of runs, joined chambers, what is refused."""

import copy

import numpy as np
import pytest
from support.actuated import check_gradient, hollow_block
from support.hollow_sphere import hollow_sphere, inflated_sphere
from support.reference_tables import REFERENCE
from support.tiers import long_case

from add.commands.convergence_file import with_finer_meshes
from add.errors import InputError
from add.geometry import boundary_faces, surface, volume
from add.geometry.mesh_round import shape_mesh
from add.scene import scene_from_dict
from add.terms import Pressure

TABLES = {
    "p": {"type": "table", "times": [0, 0.5, 1], "values": [1000, 4000, 2000]},
    "p_0": {"type": "table", "times": [0, 0.5, 1], "values": [101325, 151325, 121325]},
    "v": {"type": "table", "times": [0, 0.5, 1], "values": [4e-6, 5e-6, 4.5e-6]},
}
FILLED = {
    "pressure": {"type": "pressure", "pressure": {"signal": "p"}},
    "gas": {"type": "gas", "pressure": {"signal": "p_0"}},
    "volume": {"type": "volume", "volume": {"signal": "v"}},
    "open": {"type": "pressure", "pressure": {"signal": "p"}, "where": {"box": {"min": [0.029, None, None]}}},
}
NUMBERS = {
    "pressure": ("signals.p.Pa",),
    "open": ("signals.p.Pa",),
    "gas": ("signals.p_0.Pa", "bodies.block.chambers.air.rest_volume", "bodies.block.chambers.air.atmosphere"),
    "volume": ("signals.v.m^3",),
}


@pytest.mark.parametrize(
    ("kind", "integrator", "steps"),
    [
        ("pressure", "bdf2", 40), ("gas", "bdf2", 40), ("volume", "bdf1", 40),
        *(long_case(kind, integrator, 200) for kind in FILLED for integrator in ("bdf1", "bdf2")),
    ],
)  # fmt: skip
def test_gradient_of_a_run(kind: str, integrator: str, steps: int) -> None:
    """Reverse = forward to 1e-10, and replayed differences to 1e-6, by every number of the chamber."""
    scene = hollow_block(steps, integrator, TABLES, 1.0 / steps, chambers={"air": FILLED[kind]})
    check_gradient(scene, *NUMBERS[kind])


def neo_hookean_pressure(ratio: float, stretch: float, mu: float) -> float:
    """Return the pressure in an incompressible sphere, outer over inner radius ``ratio``, by its inner stretch."""
    outer = (1.0 + (stretch**3 - 1.0) / ratio**3) ** (1.0 / 3.0)
    at = [1.0 / (2.0 * x**4) + 2.0 / x for x in (outer, stretch)]
    return mu * (at[0] - at[1])


def test_closed_form_is_that_of_the_table() -> None:
    path = REFERENCE / "sphere_inflation.csv"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    rows = [line.split(",") for line in path.read_text().splitlines() if line.startswith("neo-hookean")]
    assert len(rows) > 20
    for _, ratio, inner, _, pressure in rows:
        found = neo_hookean_pressure(float(ratio), float(inner), 4e5)
        assert found == pytest.approx(float(pressure), rel=1e-8)


def blown_up(tmp_path, ratio: float, across: int, layers: int, steps: int):
    """Return the pressures at inner stretches 1.1, 1.2 ... over those of the closed form, minus one."""
    material = {"model": "mooney-rivlin", "c10": 2e5, "c01": 0.0, "kappa": 4e8, "density": 1000.0}
    stretches = [1.0 + 0.1 * k for k in range(steps + 1)]
    mesh = hollow_sphere(1.0, ratio, across, layers)
    built = scene_from_dict(inflated_sphere(tmp_path, mesh, material, stretches, steps, 1000.0)).build()
    trajectory = built.run()
    found = [built.chambers(record)["shell/inside"].pressure for record in trajectory.records]
    exact = [neo_hookean_pressure(ratio, x, 4e5) for x in stretches[1:]]
    assert np.argmax(exact) < 10, "the limit point is passed"
    return np.array(found) / exact - 1.0


@pytest.mark.parametrize(("ratio", "steps"), [(1.2, 11), long_case(1.2, 20), long_case(2.0, 20)])
def test_a_thick_sphere_is_blown_up_past_its_limit_point(ratio: float, steps: int, tmp_path) -> None:
    """Errors fall with the square of the edge length; see docs/soft-robots.md."""
    coarse, fine = (blown_up(tmp_path, ratio, *mesh, steps) for mesh in ((4, 2), (6, 3)))
    assert np.abs(fine).max() < (0.01 if ratio == 1.2 else 0.03)
    rate = np.log(coarse[:8] / fine[:8]) / np.log(1.5)
    assert rate.min() > 1.7


def test_the_pressure_is_no_matter_of_the_step() -> None:
    """The multiplier is a pressure, not an impulse: the same at a tenth of the step in a slow motion."""
    found = []
    for factor in (1, 10):
        scene = hollow_block(20 * factor, chambers={"air": {"type": "volume", "volume": {"signal": "v"}}})
        scene["time"] |= {"dt": 0.5 / factor}
        scene["signals"] = {"v": {"type": "table", "times": [0, 10], "values": [8e-6 / 1.8, 6e-6]}}
        built = scene_from_dict(scene).build()
        found.append(built.chambers(built.run().records[-1])["block/air"])
    assert found[0].volume == pytest.approx(6e-6, rel=1e-12) and found[0].pressure > 2000.0
    assert found[1].pressure == pytest.approx(found[0].pressure, rel=1e-3)


def test_a_gas_gives_way_by_its_law_and_joined_chambers_share_it() -> None:
    """Two bodies that one supply blows up: each as the other, p (V_1 + V_2) = p_0 V_0, at rest the energies balance."""
    scene = hollow_block(40, chambers={"air": {"type": "gas", "pressure": 130000.0}})
    scene["gravity"] = [0, 0, 0]
    other = copy.deepcopy(scene["bodies"]["block"])
    other |= {"position": [0.2, 0, 0], "chambers": {"own": {"type": "joined", "to": "block/air"}}}
    alone = scene_from_dict(scene).build()
    single = alone.chambers(alone.run().records[-1])["block/air"]
    scene["bodies"]["other"] = other
    built = scene_from_dict(scene).build()
    run = built.run()
    both = built.chambers(run.records[-1])
    assert list(both) == ["block/air"]
    x = run.q[-1].reshape(2, -1, 3)
    assert np.abs(x[1] - x[0] - [0.2, 0.0, 0.0]).max() < 1e-9
    assert both["block/air"].volume == pytest.approx(2.0 * single.volume, rel=1e-9)
    assert both["block/air"].pressure == pytest.approx(single.pressure, rel=1e-9)
    rest = 2.0 * 0.02 * 0.05 / 3 * 0.04 / 3
    assert (both["block/air"].pressure + 101325.0) * both["block/air"].volume == pytest.approx(
        130000.0 * rest, rel=1e-9
    )


def test_two_chambers_of_one_hollow_are_refused() -> None:
    """Two pressures added up without a word."""
    twice = {"air": {"type": "pressure", "pressure": 1e3}, "more": {"type": "gas", "cavity": 0}}
    with pytest.raises(InputError, match=r"chambers\.more: another chamber has the same walls"):
        scene_from_dict(hollow_block(chambers=twice)).build()


@pytest.mark.parametrize(
    ("change", "place", "says"),
    [
        ({"type": "gas", "where": {"box": {"min": [0.029, None, None]}}}, "air", "one hole"),
        ({"type": "volume", "cavity": 2}, "air.cavity", "1 hollow"),
        ({"type": "joined", "to": "block/water"}, "air.to", "there is no chamber of this name"),
        ({"type": "joined", "to": "air"}, "air.to", "there is no chamber of this name"),
        ({"type": "gas", "where": {"nodes": [0]}}, "air.where", "no whole face"),
        ({"type": "gas", "cavity": 0, "where": {"all": True}}, "air", "a hollow or a selection"),
        ({"type": "pressure", "pressure": {"signal": "w"}}, "air.pressure", "signal 'w'"),
    ],
)  # fmt: skip
def test_what_is_no_chamber_is_refused(change: dict, place: str, says: str) -> None:
    signals = {"w": {"type": "constant", "value": [0, 0, 1]}}
    with pytest.raises(InputError) as error:
        scene_from_dict(hollow_block(signals=signals, chambers={"air": change})).build()
    text = str(error.value)
    assert f"bodies.block.chambers.{place}" in text and says.replace("one hole", "1 hole") in text


@pytest.mark.parametrize(("element", "triangles"), [("tet10", 4), ("hex8", 2)])
def test_a_selection_presses_on_whole_faces(element: str, triangles: int) -> None:
    """Triangles of faces of which some nodes are not selected are not pressed on, though all of their own are."""
    block = {
        "type": "soft", "mesh": {"shape": "box", "size": [0.02, 0.03, 0.05], "divisions": [2, 2, 2]},
        "element": element, "material": {"young": 1e4, "poisson": 0.3, "density": 900},
    }  # fmt: skip
    given = {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": 1}, "bodies": {"block": block}}
    mesh = scene_from_dict(given).build().model.bodies[0].mesh
    chosen = np.ones(mesh.n_nodes, dtype=bool)
    chosen[surface(mesh).nodes[::7]] = False
    block["chambers"] = {
        "air": {"type": "pressure", "pressure": 40, "where": {"nodes": np.flatnonzero(chosen).tolist()}}
    }
    (term,) = scene_from_dict(given).build().model.term(Pressure)
    whole = chosen[boundary_faces(mesh).faces].all(axis=1).sum()
    assert len(term.triangles) == triangles * whole > 0
    assert chosen[surface(mesh).triangles].all(axis=1).sum() > triangles * whole


def test_a_body_without_a_hollow_says_so() -> None:
    scene = hollow_block(chambers={"air": {"type": "gas"}})
    scene["bodies"]["block"]["mesh"].pop("hollows")
    with pytest.raises(InputError, match=r"the chamber is not said \(found 0 hollows"):
        scene_from_dict(scene).build()
    scene["bodies"]["block"]["mesh"]["hollows"] = [[[1, 1, 1], [2, 2, 4]]]
    with pytest.raises(InputError, match="impossible hollow"):
        scene_from_dict(scene).build()


@pytest.mark.parametrize("element", ["hex8", "tet4", "tet10"])
def test_hollows_are_no_volume(element: str, tmp_path) -> None:
    """A block without the cells in its middle, and its chamber, fill the box; so does the mesh of a finer study."""
    scene = hollow_block(element=element, chambers={"air": {"type": "gas"}})
    for found in (scene_from_dict(scene), with_finer_meshes(scene_from_dict(scene), tmp_path)[0]):
        built = found.build()
        (body,) = built.model.bodies
        inside = float(built.numbers.values[built.numbers.place("bodies.block.chambers.air.rest_volume")])
        assert inside == pytest.approx(0.06 * 0.05 * 0.04 / 27.0, rel=1e-12)
        assert volume(body.mesh) + inside == pytest.approx(0.06 * 0.05 * 0.04, rel=1e-12)


def test_a_balloon_of_cloth_stretches_as_a_thin_sphere_does(tmp_path) -> None:
    """e = p r (1 - nu)/(2 E h), for a given pressure and that of a gas; triangles that go round inward are turned."""
    ball = shape_mesh("sphere", radius=0.1, edge=0.025)
    outline = surface(ball)
    corners = [f"v {x} {y} {z}" for x, y, z in ball.points[outline.nodes].tolist()]
    faces = 1 + np.searchsorted(outline.nodes, outline.triangles)
    (tmp_path / "ball.obj").write_text("\n".join([*corners, *(f"f {a} {c} {b}" for a, b, c in faces.tolist()), ""]))
    membrane = {"model": "stvk", "young": 1e5, "poisson": 0.3}
    cloth = {
        "type": "cloth",
        "mesh": {"file": str(tmp_path / "ball.obj")},
        "material": {
            "density": 1.0,
            "thickness": 1e-3,
            "membrane": membrane,
            "bending": {"model": "plate", "rigidity": 1e-5},
        },
    }
    for chamber in ({"type": "pressure", "pressure": 20.0}, {"type": "gas", "pressure": 103325.0}):
        scene = hollow_block(5)
        scene["time"] = {"dt": 1.0, "steps": 5}
        scene |= {"gravity": [0, 0, 0], "bodies": {"balloon": cloth | {"chambers": {"air": chamber}}}}
        built = scene_from_dict(scene).build()
        run = built.run()
        pressure = built.chambers(run.records[-1])["balloon/air"].pressure
        strain = np.linalg.norm(run.q[-1].reshape(-1, 3), axis=1).mean() / 0.1 - 1.0
        assert pressure > 10.0
        assert strain == pytest.approx(pressure * 0.1 * 0.7 / (2.0 * 1e5 * 1e-3), rel=0.02)
