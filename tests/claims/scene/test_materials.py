"""Laws of stretches and fibres, regions and fields of moduli in scenes: runs, gradients, what is refused."""

from typing import Any

import numpy as np
import pytest
from support.run_checks import check_gradient_of_run
from support.small_models import RoughObjective
from support.tiers import long_case

from add import scene_from_dict
from add.errors import InputError
from add.geometry import quadrature_geometry
from add.geometry.mesh_round import shape_mesh
from add.io.meshes import write_mesh
from add.io.trajectory_file import read_run, write_run
from add.scene.build.run_data import run_data
from add.scene.build.targets import roughness
from add.scene.build.write_back import with_values
from add.terms import NodalForce
from add.view.quantities import von_mises

DAMPED = {"density": 1000, "viscosity": 4, "rayleigh_stiffness": 1e-3}
ROUND = {"around": [0, 0, 1], "point": [-0.2, 0, 0], "pitch": 0.3}
OGDEN = {"model": "ogden", "mu1": 6e3, "alpha1": 1.3, "mu2": 50, "alpha2": 5, "mu3": -500, "alpha3": -2, "kappa": 3e4}
HEART = {
    "model": "holzapfel-ogden", "a": 2000, "b": 2, "a_f": 9000, "b_f": 3, "a_s": 2000, "b_s": 1.5, "a_fs": 800,
    "b_fs": 2, "kappa": 2e4, "fibres": {"fibre": {"direction": [1, 2, 0]}, "sheet": {"direction": [-2, 1, 0]}},
}  # fmt: skip
ARTERY = {
    "model": "hgo", "c": 5000, "k1": 9000, "k2": 2, "dispersion": 0.1, "kappa": 4e4, "fibres": {"fibre": ROUND}
}  # fmt: skip
FIELD = {"model": "corotated", "young": {"each": 2e4}, "poisson": 0.3}
MIXED = {
    "model": "formula", "energy": "m/2*(I1b - 3) + k/2*(J - 1)**2 + f*pos(I4 - 1)**2 + m/8*(l1 + l2 + l3 - 3)**2",
    "numbers": {"m": {"each": 8e3}, "k": 5e4, "f": 9e3}, "fibres": {"fibre": ROUND},
}  # fmt: skip


def block(material: dict[str, Any], n_steps: int = 4, **body: Any) -> dict[str, Any]:
    """A block that is held at one end and hangs."""
    own = {
        "type": "soft", "mesh": {"shape": "box", "size": [0.1, 0.05, 0.05], "divisions": [2, 1, 1]},
        "material": DAMPED | material, "pins": [{"where": {"box": {"max": [-0.0499, None, None]}}}],
        "velocity": [0.0, 0.1, 0.2],
    }  # fmt: skip
    return {
        "schema": "add-scene/1",
        "time": {"dt": 0.004, "duration": 0.004 * n_steps, "newton": {"atol": 1e-11, "rtol": 0}},
        "bodies": {"block": own | body},
    }


INCLUSION = {"core": {"where": {"box": {"min": [0, None, None]}}, "material": DAMPED | OGDEN | {"density": 1500}}}


RIGHT = {"box": {"min": [0.0499, None, None]}}
LEFT_HALF = {"box": {"max": [0.01, None, None]}}
PLACED = {"where": RIGHT, "force": [0, 0.02, -0.05], "at": [0.05, 0.012, 0.02]}


def relaxing(law: dict[str, Any], core: dict[str, Any]) -> dict[str, Any]:
    """Both a field of moduli and a region relax, in enhanced elements."""
    two = {"fast": {"share": 0.2, "time": 0.004}, "slow": {"share": 0.1, "time": 0.05}}
    return {
        "material": FIELD | law | {"relaxation": {"slow": {"share": 0.3, "time": 0.01}}}, "element": "hex8",
        "enhanced": True, "regions": {"core": INCLUSION["core"] | {"material": DAMPED | core | {"relaxation": two}}},
    }  # fmt: skip


FINER = {"shape": "box", "size": [0.1, 0.05, 0.05], "divisions": [4, 3, 3]}

CASES: dict[str, dict[str, Any]] = {
    "field-and-region": {"material": FIELD, "regions": INCLUSION},
    "heart": {"material": HEART, "element": "hex8"},
    "artery-mean": {"material": ARTERY, "element": "hex8", "mean_dilatation": True},
    "enhanced": {
        "material": FIELD | {"viscosity_exponent": 1.4}, "element": "hex8", "enhanced": True, "regions": INCLUSION
    },
    "relaxing": relaxing({"model": "neo-hookean"}, {"model": "neo-hookean", "young": 6e4, "poisson": 0.2}),
    "load-at-a-place": {"material": FIELD, "loads": [PLACED]},
}  # fmt: skip
LONG = {
    "mixed": {"material": MIXED},
    "relaxing-stretches": relaxing({}, OGDEN),
    **{
        f"{case}-200": CASES[case] | {"n_steps": 200}
        for case in ("field-and-region", "heart", "artery-mean", "load-at-a-place")
    },
}


@pytest.mark.parametrize("case", [*CASES, *map(long_case, LONG)])
def test_gradient_of_run(case: str) -> None:
    """By every number and field, directions of fibres included: backward, forward, replayed differences."""
    given = (CASES | LONG)[case]
    built = scene_from_dict(block(**given)).build()
    objective = RoughObjective(np.random.default_rng(1).normal(size=built.model.system.n))
    check_gradient_of_run(built.simulation, objective)


@pytest.mark.parametrize("exponent", [1.4, 3.0])
def test_viscosity_keeps_the_spin_of_free_flight(exponent: float) -> None:
    """The stress F D of D = sym(F^T F_dot) has no moment.

    That of sym(F_dot), linear in the velocities, takes the power 2 nu V omega^2 sin^2 of the angle from a rotation: it
    would leave exp(-nu V t / I) of the spin. BDF2 takes a per cent at 0.08 rad a step, with viscosity or without.
    """
    nu, omega, n_steps = 4.0, 20.0, 100
    given = {"model": "corotated", "young": 2e5, "poisson": 0.3, "viscosity": nu, "viscosity_exponent": exponent}
    scene = block(given, n_steps, pins=[], velocity=[0, 0, 1], angular_velocity=[0, 0, omega])
    built = scene_from_dict(scene | {"gravity": [0, 0, 0]}).build()
    run = built.run()
    shares = built.model.bodies[0].mass_shares()

    def spin(k: int) -> float:
        x, v = (rows[k].reshape(-1, 3) - shares @ rows[k].reshape(-1, 3) for rows in (run.q, run.v))
        return float(shares @ (x[:, 0] * v[:, 1] - x[:, 1] * v[:, 0]))

    assert np.exp(-nu * run.t[-1] / (1000 * (0.1**2 + 0.05**2) / 12)) < 0.25
    assert spin(n_steps) == pytest.approx(spin(0), rel=0.015)


def test_a_field_of_one_number_is_that_number() -> None:
    runs = [scene_from_dict(block(FIELD | {"young": young})).build().run().q for young in (2e4, {"each": 2e4})]
    assert np.abs(runs[0] - runs[1]).max() < 1e-13


def test_regions_are_the_field_that_they_make() -> None:
    """Two halves of a block, as a region and as a list of moduli; masses add up."""
    stiff = {"half": {"where": {"box": {"min": [0, None, None]}}, "material": DAMPED | FIELD | {"young": 9e4}}}
    one = scene_from_dict(block(FIELD | {"young": 2e4}, regions=stiff)).build()
    body = one.model.body("block")
    middles = body.mesh.points[body.mesh.cells].mean(axis=1)[:, 0]
    other = scene_from_dict(block(FIELD | {"young": np.where(middles > 0.0, 9e4, 2e4).tolist()})).build()
    assert np.abs(one.run().q - other.run().q).max() < 1e-12
    heavy = {"half": {"where": {"box": {"min": [0, None, None]}}, "material": DAMPED | FIELD | {"density": 3000}}}
    built = scene_from_dict(block(FIELD, regions=heavy)).build()
    assert built.model.node_masses(built.theta).sum() == pytest.approx(2000 * 0.1 * 0.05**2, rel=1e-12)


def test_fields_and_regions_of_files(tmp_path) -> None:
    """Cell data of a mesh file, and a table, give what a list gives."""
    import meshio

    mesh = shape_mesh("box", element="tet4", size=(0.1, 0.05, 0.05), divisions=(2, 1, 1))
    young = np.linspace(1e4, 5e4, mesh.n_elements)
    fibres = np.random.default_rng(2).normal(size=(mesh.n_elements, 3))
    part = (np.arange(mesh.n_elements) % 3 == 0).astype(float)
    data = {"E": [young], "a": [fibres], "part": [part]}
    meshio.write(tmp_path / "block.vtu", meshio.Mesh(mesh.points, [("tetra", mesh.cells)], cell_data=data))
    np.savetxt(tmp_path / "E.csv", young)
    file = {"file": str(tmp_path / "block.vtu")}
    runs = [
        scene_from_dict(block(FIELD | {"young": value}, mesh=file)).build().run().q
        for value in (young.tolist(), {"cell_data": "E"}, {"file": str(tmp_path / "E.csv")})
    ]
    assert np.array_equal(runs[0], runs[1]) and np.abs(runs[0] - runs[2]).max() < 1e-12
    where = {"other": {"where": {"cell_data": "part", "value": 1}, "material": DAMPED | FIELD}}
    built = scene_from_dict(block(ARTERY | {"fibres": {"fibre": {"cell_data": "a"}}}, mesh=file, regions=where)).build()
    artery, other = built.model.body("block").materials
    assert np.array_equal(other.elements, np.flatnonzero(part))
    found = [built.model.system.parameters.view(built.theta, f"bodies.block.fibre.{axis}") for axis in "xyz"]
    expected = fibres / np.linalg.norm(fibres, axis=1)[:, None]
    np.testing.assert_allclose(np.stack(found, axis=1), expected[artery.elements], rtol=1e-12)


def test_results_keep_fields(tmp_path) -> None:
    """Stress is drawn with the moduli of each element, and not where another law is at work."""
    built = scene_from_dict(block(FIELD, regions=INCLUSION)).build()
    write_run(tmp_path / "run.h5", run_data(built, built.run(), built.theta))
    data = read_run(tmp_path / "run.h5")
    (body,) = data.bodies
    core = built.model.body("block").materials[1].elements
    assert np.isnan(body.moduli[body.group[core]]).all() and np.isfinite(np.delete(body.moduli, -1, axis=0)).all()
    stress = von_mises(body, data.q[-1][body.entries], quadrature_geometry(body.mesh))
    assert np.isnan(stress).any() and np.nanmax(stress) > 0.0


def test_helix() -> None:
    """Fibres round an axis: across the arm, at the pitch to the circumference."""
    built = scene_from_dict(block(ARTERY)).build()
    body, parameters = built.model.body("block"), built.model.system.parameters
    found = np.stack([parameters.view(built.theta, f"bodies.block.fibre.{axis}") for axis in "xyz"], axis=1)
    arms = body.mesh.points[body.mesh.cells].mean(axis=1) - [-0.2, 0, 0]
    np.testing.assert_allclose((found[:, :2] * arms[:, :2]).sum(axis=1), 0.0, atol=1e-15)
    np.testing.assert_allclose(found[:, 2], np.sin(0.3), rtol=1e-12)


def test_fibres_between_ends() -> None:
    """From one end of a block to the other they lead along it, in each region that has them."""
    between = {"fibre": {"between": [{"box": {"max": [-0.0499, None, None]}}, RIGHT]}}
    for given in ({}, {"regions": INCLUSION}):
        built = scene_from_dict(block(ARTERY | {"fibres": between}, **given)).build()
        found = [built.model.system.parameters.view(built.theta, f"bodies.block.fibre.{axis}") for axis in "xyz"]
        assert found[0].size == (6 if given else 12)
        np.testing.assert_allclose(np.stack(found, axis=1), np.tile([1.0, 0.0, 0.0], (found[0].size, 1)), atol=1e-12)


@pytest.mark.parametrize(
    "place", [[0.05, 0.012, 0.02], [0.05, -0.3, 0.4]], ids=["on the face", "far beside it: forces that pull and push"]
)
def test_a_load_at_a_place(place: list[float]) -> None:
    """Force and torque of all nodes are those of the force at its place; in their middle they share alike."""
    scene = block(FIELD, loads=[PLACED | {"at": place}], mesh=FINER)
    built = scene_from_dict(scene).build()
    (term,) = built.model.term(NodalForce)
    forces = np.zeros(built.model.system.n)
    kin = built.run(n_steps=1).kinematics(0)
    term.residual(kin, built.theta, forces)
    forces, points = -forces.reshape(-1, 3), built.model.body("block").mesh.points
    np.testing.assert_allclose(forces.sum(axis=0), PLACED["force"], atol=1e-15)
    np.testing.assert_allclose(np.cross(points, forces).sum(axis=0), np.cross(place, PLACED["force"]), atol=1e-15)
    last = [
        scene_from_dict(block(FIELD, loads=[load], mesh=FINER)).build().run().q[-1]
        for load in (PLACED | {"at": [0.05, 0, 0]}, {key: PLACED[key] for key in ("where", "force")})
    ]
    assert np.abs(last[0] - last[1]).max() < 1e-13


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "enhanced-tet": ({"material": FIELD, "enhanced": True}, "only hexahedra are enhanced (found tet4; expected hex8)"),
    "enhanced-mean": ({"material": FIELD, "element": "hex8", "enhanced": True, "mean_dilatation": True},
                      "bodies.block.enhanced: enhanced elements with mean dilatation bend without resistance"),
    "incompressible": ({"material": FIELD | {"poisson": 0.5}}, "poisson"),
    "incompressible-field": ({"material": FIELD | {"poisson": [0.5] * 12}}, "poisson"),
    "drucker": ({"material": OGDEN | {"mu1": -6e3}}, "not stable at small strains (Drucker)"),
    "drucker-field": (
        {"material": {"model": "corotated", "mu": 1e4, "lambda": [1e4] * 11 + [-7e3]}},
        "bodies.block.material: the material is not stable at small strains (Drucker) (found mu = 10000 Pa and K = "
        "-333.333 Pa in element 11",
    ),
    "length": ({"material": FIELD | {"young": [1e4, 2e4]}}, "young: a field of the wrong length (found 2 numbers; "
               "expected 12, one for each element)"),
    "no-length": ({"material": ARTERY | {"fibres": {"fibre": {"direction": [0, 0, 0]}}}}, "a direction must not be"),
    "on-axis": (
        {"material": ARTERY | {"fibres": {"fibre": {"around": [0, 0, 1], "point": [-0.025, 0, 0]}}}, "element": "hex8"},
        "goes through the middle of an element",
    ),
    "one-end": ({"material": ARTERY | {"fibres": {"fibre": {"between": [RIGHT, RIGHT]}}}},
                "fibres.fibre.between: the two ends have a node in common"),
    "no-way-between": ({"material": ARTERY | {"fibres": {"fibre": {"between": [LEFT_HALF, RIGHT]}}}},
                       "a fibre without a length"),
    "off-the-nodes": ({"material": FIELD, "loads": [PLACED | {"at": [0.04, 0, 0]}]},
                      "bodies.block.loads.0.at: the nodes do not span the place"),
    "no-fibres": ({"material": {key: value for key, value in ARTERY.items() if key != "fibres"}}, "fibres"),
    "no-sheet": ({"material": HEART | {"fibres": {"fibre": ROUND}}}, "the law needs this direction (found no 'sheet'"),
    "sheet-for-nothing": ({"material": ARTERY | {"fibres": {"fibre": ROUND, "sheet": ROUND}}},
                          "fibres.sheet: the law does not have this direction"),
    "not-across": ({"material": HEART | {"fibres": {"fibre": ROUND, "sheet": ROUND}}}, "sheets lie across fibres"),
    "formula-without": ({"material": {key: value for key, value in MIXED.items() if key != "fibres"}},
                        "the law needs this direction (found no 'fibre'"),
    "cell-data-of-a-shape": ({"material": FIELD | {"young": {"cell_data": "E"}}}, "only meshes from files"),
    "no-file": ({"material": FIELD | {"young": {"file": "nowhere.csv"}}}, "nowhere.csv"),
    "nothing-inside": ({"material": FIELD, "regions": {
        "far": {"where": {"sphere": {"center": [9, 9, 9], "radius": 1}}, "material": DAMPED | FIELD}}},
        "regions.far.where: the selection holds no element"),
    "overlap": ({"material": FIELD, "regions": {
        key: {"where": {"box": {"min": [0, None, None]}}, "material": DAMPED | FIELD} for key in ("one", "two")}},
        "regions.two.where: regions overlap (found 6 elements"),
    "nothing-left": ({"material": FIELD, "regions": {
        "all": {"where": {"box": {"min": [-1, None, None]}}, "material": DAMPED | FIELD}}}, "leave nothing of"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_refused(case: str) -> None:
    given, message = WRONG[case]
    with pytest.raises(InputError) as error:
        scene_from_dict(block(**given)).build()
    assert message in str(error.value)


def test_files_that_do_not_fit(tmp_path) -> None:
    mesh = shape_mesh("box", element="tet4", size=(0.1, 0.05, 0.05), divisions=(2, 1, 1))
    write_mesh(tmp_path / "block.vtu", mesh)
    (tmp_path / "rows.txt").write_text("0 0 1\n" * 11)
    (tmp_path / "zero.txt").write_text("0 0 1\n" * 7 + "0 0 0\n" + "1 0 0\n" * 4)
    (tmp_path / "words.txt").write_text("one\n")
    for material, message in (
        (FIELD | {"young": {"cell_data": "E"}}, "the mesh has no such cell data (found 'E'"),
        (
            ARTERY | {"fibres": {"fibre": {"file": str(tmp_path / "rows.txt")}}},
            "found 11 rows of 3 numbers",
        ),
        (ARTERY | {"fibres": {"fibre": {"file": str(tmp_path / "zero.txt")}}}, "zero for element 7"),
        (FIELD | {"young": {"file": str(tmp_path / "words.txt")}}, "not a table of numbers"),
    ):
        with pytest.raises(InputError) as error:
            scene_from_dict(block(material, mesh={"file": str(tmp_path / "block.vtu")})).build()
        assert message in str(error.value)


def rough(**item: Any) -> dict[str, Any]:
    raw = block(FIELD, element="hex8", mesh={"shape": "box", "size": [0.1, 0.05, 0.05], "divisions": [5, 2, 2]})
    return raw | {
        "objective": [{"type": "roughness", "field": "bodies.block.material.young"} | item],
        "parameters": [{"path": "bodies.block.material.young", "transform": "log"}],
    }


@pytest.mark.parametrize("norm", ["squares", "variation"])
def test_roughness(norm: str) -> None:
    """Of ln E along x, the integrals over the inner faces; the slopes by all elements against differences."""
    raw = rough(norm=norm, softness=0.1)
    scene = scene_from_dict(raw)
    mesh = scene.build().model.body("block").mesh
    middles = mesh.points[mesh.cells].mean(axis=1)[:, 0]
    for field, squares, variation in (
        (30.0 * middles, 30.0**2 * 2.5e-4 * 0.8, 4 * 2.5e-3 * (np.hypot(0.6, 0.1) - 0.1)),
        (np.where(middles > 0.02, 1.5, 0.0), 1.5**2 / 0.02 * 2.5e-3, 2.5e-3 * (np.hypot(1.5, 0.1) - 0.1)),
    ):
        raw["bodies"]["block"]["material"] |= {"young": (2e4 * np.exp(field)).tolist()}
        scene = scene_from_dict(raw)
        built = scene.build()
        objective = roughness(scene.objective[0], built, "objective.0")
        size = 2.5e-4 ** (1.0 / 3.0)
        expected = squares / size if norm == "squares" else variation / size**2
        assert objective.parameter_value(built.theta) == pytest.approx(expected, rel=1e-9)
    at = built.model.system.parameters["bodies.block.mu"].indices
    theta, gradient = built.theta.copy(), np.zeros(built.theta.size)
    theta[at] *= np.exp(0.3 * np.random.default_rng(3).normal(size=at.size))
    objective.parameter_gradient(theta, gradient)
    steps = [1e-5 * theta[k] * np.eye(theta.size)[k] for k in at]
    slopes = [objective.parameter_value(theta + step) - objective.parameter_value(theta - step) for step in steps]
    scaled = gradient[at] * theta[at]
    np.testing.assert_allclose(scaled, np.array(slopes) / 2e-5, rtol=0, atol=1e-8 * np.abs(scaled).max())
    assert np.flatnonzero(gradient).tolist() == sorted(at.tolist())


def test_found_fields_are_written_as_lists() -> None:
    scene = scene_from_dict(rough())
    problem = scene.inverse_problem()
    assert problem.labels()[7] == "bodies.block.material.young[7]"
    found = with_values(scene, problem, problem.x0 + np.linspace(0.0, 1.0, problem.n))
    young = found.bodies["block"].material.young
    assert len(young) == 20 and young[0] == pytest.approx(2e4) and young[-1] > 2.5e4


@pytest.mark.parametrize("field", ["bodies.block.material.poisson", "bodies.block.material.density"])
def test_roughness_of_no_field(field: str) -> None:
    with pytest.raises(InputError) as error:
        scene_from_dict(rough(field=field)).inverse_problem()
    assert "objective.0.field: this is no field over the elements of a body" in str(error.value)
