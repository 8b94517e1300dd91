"""What bodies are coloured by."""

import dataclasses

import numpy as np
import pytest
from support.places import ROOT
from view.sample_run import sample_run
from view.sample_solids import solids_run

from add import load_scene
from add.errors import InputError
from add.geometry import quadrature_geometry
from add.scene.build.run_data import run_data
from add.view.quantities import prefixed, quantity, von_mises
from add.view.surfaces import curved_faces


def stretched(factors, family="tet10", **changes):
    """One state of a body with F = diag(factors), and the body."""
    body = dataclasses.replace(sample_run(2, (2, 1, 1), family).bodies[0], **changes)
    return body, (body.rest * np.asarray(factors)).ravel()


@pytest.mark.parametrize("family", ["tet4", "tet10", "hex8"])
@pytest.mark.parametrize("mean_dilatation", [False, True])
def test_von_mises_of_a_uniform_stretch(family, mean_dilatation):
    body, q = stretched((1.2, 1.0, 1.0), family, mean_dilatation=mean_dilatation)
    # sigma_xx - sigma_yy = mu / J (1.2^2 - 1), sigma_yy = sigma_zz
    expected = body.moduli[0, 0] / 1.2 * (1.2**2 - 1.0)
    found = von_mises(body, q, quadrature_geometry(body.mesh))
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_pressure_alone_gives_no_von_mises_stress():
    body, q = stretched((0.9, 0.9, 0.9), model="neo-hookean-ciarlet")
    assert von_mises(body, q, quadrature_geometry(body.mesh)).max() < 1e-8 * body.moduli[0, 0]


def test_values_and_ranges():
    data = sample_run(21)
    k = 20
    x = data.positions(data.bodies[0], k) - data.positions(data.bodies[0], 0)
    displacement = quantity(data, "displacement")
    assert displacement.title == "displacement [mm]"
    np.testing.assert_allclose(displacement.values(0, k), 1e3 * np.linalg.norm(x, axis=1))
    contact = quantity(data, "contact")
    force = np.linalg.norm(data.contact_force.reshape(-1, 3), axis=1).max()
    assert contact.range[1] * 1.3 >= force * contact.factor >= 0.7 * contact.range[1]
    assert quantity(data, "stress").unit == "kPa"
    still = dataclasses.replace(data, contact_force=0 * data.contact_force)
    assert quantity(still, "contact").range == (0.0, 1.0)
    with pytest.raises(InputError, match="'displacement' or 'speed'"):
        quantity(data, "temperature")


def test_solids():
    data = solids_run(41)
    places = np.array([[0.1, 0.06, -0.04], [-0.1, 0.0, 0.04]])
    speed, displacement = quantity(data, "speed"), quantity(data, "displacement")
    k = 17
    x = []
    for state in (0, k - 1, k, k + 1):
        rotation, position = data.pose(data.solids[0], state)
        x.append(places @ rotation.T + position)
    expected = np.linalg.norm(x[3] - x[1], axis=1) / (data.t[k + 1] - data.t[k - 1])
    np.testing.assert_allclose(speed.at(0, k, places) / speed.factor, expected, rtol=5e-3, atol=2e-3)
    moved = np.linalg.norm(x[2] - x[0], axis=1)
    np.testing.assert_allclose(displacement.at(0, k, places) / displacement.factor, moved, atol=1e-12)
    assert speed.shown
    assert speed.values(0, k).shape == (80,), "sheets follow the soft bodies"
    stress = quantity(data, "stress")
    assert not stress.shown
    assert np.isnan(stress.at(0, k, places)).all() and np.isnan(stress.values(0, k)).all()


def test_given_motions_do_not_stretch_the_range():
    data = solids_run(11)
    pusher = next(solid for solid in data.solids if solid.kinematic)
    assert quantity(dataclasses.replace(data, solids=(pusher,), sheets=()), "speed").shown is False


def test_prefixes():
    assert prefixed("m", 0.3) == ("mm", 1e3)
    assert prefixed("N", 12.0) == ("N", 1.0)
    unit, factor = prefixed("Pa", 1e-8)
    assert unit == "µPa"
    assert factor == pytest.approx(1e6)


def test_a_robot_is_whole_and_neutral(tmp_path):
    """Its base is drawn where it stands still; at rest all is NaN, one grey, not the lower end of a scale."""
    from click import Command, Context

    from add.commands.cli_runs import _run_data
    from add.commands.console import Console

    box = '<collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision>'
    mass = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    path = tmp_path / "arm.urdf"
    path.write_text(
        f'<robot name="r"><link name="base">{box}</link><link name="arm">{mass}{box}</link><joint name="j" '
        'type="continuous"><parent link="base"/><child link="arm"/><origin xyz="0 0 0.2"/></joint></robot>'
    )
    with Context(Command("view")):
        data = _run_data(Console(False, True), str(path), None, (), False, None)
    assert len(data.solids) == 1 and len(data.obstacles) == 1
    for name in ("displacement", "speed"):
        found = quantity(data, name)
        assert not found.shown and np.isnan(found.at(0, 0, np.zeros((2, 3)))).all()


def test_curved_faces_of_quadratic_elements_are_drawn_curved():
    """A ball of ten-node tetrahedra: closed, and five times closer to the sphere than flat triangles of its nodes."""
    built = load_scene(ROOT / "scenes" / "tennis_ball.json").build()
    (body,) = run_data(built, built.run(n_steps=0), built.theta).bodies
    weights, triangles = curved_faces(body)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-12)
    sides = np.sort(triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
    assert (np.unique(sides, axis=0, return_counts=True)[1] == 2).all()
    radius = np.linalg.norm(body.rest[body.surface], axis=2).max()

    def gap(points, faces):
        return radius - np.linalg.norm(points[faces].mean(axis=1), axis=1).min()

    assert 5.0 * gap(weights @ body.rest, triangles) < gap(body.rest, body.surface)
