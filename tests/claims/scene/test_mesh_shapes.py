"""Closed meshes as collision shapes in scenes: obstacles and rigid bodies from files."""

import numpy as np
import pytest
from support.meshes import torus

from add.errors import InputError
from add.io.trajectory_file import read_run, write_run
from add.kernels.shape_codes import MESH
from add.scene import scene_from_dict
from add.scene.build.run_data import run_data


def write_obj(path, vertices, triangles):
    lines = [f"v {x} {y} {z}" for x, y, z in vertices] + [f"f {a} {b} {c}" for a, b, c in triangles + 1]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def scene(file, body=None, **more):
    """Return a scene of a crate of points over a ring: of the world, or of a rigid body."""
    crate = {
        "type": "rigid",
        "geometry": {"shape": "box", "size": [0.06, 0.06, 0.06]},
        "collision": {"spacing": 0.02},
        "density": 500,
        "position": [0.1, 0, 0.072],
        "velocity": [0, 0.1, -0.6],
    }
    obstacles = {"ring": {"shape": "mesh", "file": file, "center": [0, 0, 0]}} if body is None else {}
    bodies = {"crate": crate} | ({} if body is None else {"ring": body})
    return scene_from_dict(
        {
            "schema": "add-scene/1",
            "gravity": [0, 0, -9.81],
            "time": {"dt": 0.002, "steps": 8, "integrator": "bdf1"},
            "bodies": bodies,
            "obstacles": obstacles,
            "contact": {"stiffness": 2e3, "friction": 0.4, **more},
        }
    )


@pytest.fixture
def ring(tmp_path):
    return write_obj(tmp_path / "ring.obj", *torus())


def touched(built):
    """Run; return the counts of the last decision of the first contact term that touches anything, and the run."""
    trajectory = built.simulation.run()
    system = built.simulation.system
    counts = [
        term.describe(decision)
        for record in trajectory.records
        for term, decision in zip(system.deciding, record.decisions, strict=True)
    ]
    return max((count for count in counts), key=lambda count: count["touching"]), trajectory


def test_a_mesh_of_the_world(ring, tmp_path):
    built = scene(ring).build()
    counts, trajectory = touched(built)
    assert counts["touching"] > 0
    data = run_data(built, trajectory, built.simulation.theta)
    (obstacle,) = data.obstacles
    assert obstacle.kind == MESH and obstacle.vertices.shape == (288, 3) and obstacle.triangles.shape == (576, 3)
    write_run(tmp_path / "trajectory.h5", data)
    (again,) = read_run(tmp_path / "trajectory.h5").obstacles
    np.testing.assert_array_equal(again.vertices, obstacle.vertices)
    np.testing.assert_array_equal(again.triangles, obstacle.triangles)
    np.testing.assert_allclose(again.size, [0.14, 0.14, 0.04])


@pytest.mark.parametrize("friction_law", ["tanh", "hybrid"])
def test_a_rigid_body_from_a_file_is_met_and_feels_it(ring, friction_law):
    body = {"type": "rigid", "geometry": {"file": ring}, "density": 300, "collision": {"closed": True}}
    built = scene(ring, body, friction_law=friction_law).build()
    counts, trajectory = touched(built)
    assert counts["touching"] > 0
    start = built.simulation.system.dofs["ring"].start
    assert abs(trajectory.v[-1, start + 3 : start + 6]).max() > 1e-3, "nothing turned the ring"


def test_a_kinematic_body_from_a_file_is_met(ring):
    counts, _ = touched(
        scene(ring, {"type": "kinematic", "geometry": {"file": ring}, "collision": {"closed": True}}).build()
    )
    assert counts["touching"] > 0


def test_without_a_shape_nothing_is_met(ring):
    for off in ({"shape": False, "closed": True, "points": False}, {"points": False}):
        body = {"type": "rigid", "geometry": {"file": ring}, "density": 300, "collision": off}
        assert not scene(ring, body).build().model.body("ring").shapes


@pytest.mark.parametrize(
    ("spoil", "message"),
    [(lambda v, t: (v, t[2:]), "not closed"), (lambda v, t: (v, t[:, ::-1]), "inside out")],
)
def test_a_file_that_is_no_closed_surface_is_one_error(tmp_path, spoil, message):
    file = write_obj(tmp_path / "bad.obj", *spoil(*torus()))
    with pytest.raises(InputError, match=rf"(?s)(bad.obj.*obstacles.ring|obstacles.ring.*bad.obj).*{message}") as error:
        scene(file).build()
    assert error.value.exit_code == 2
    body = {"type": "rigid", "geometry": {"file": file}, "mass": 1.0, "inertia": [1, 1, 1, 0, 0, 0]}
    body |= {"center_of_mass": [0, 0, 0], "collision": {"closed": True}}
    with pytest.raises(InputError, match=message):
        scene(file, body).build()
    scene(file, body | {"collision": {"closed": False}}).build()


def test_a_start_deep_in_a_mesh_is_told(ring):
    from add.model.overlaps import deep_starts

    built = scene(ring).build()
    theta = built.simulation.theta.copy()
    built.simulation.system.parameters.view(theta, "bodies.crate.position")[:] = [0.1, 0, 0.02]
    assert [(item.body, item.other) for item in deep_starts(built.model, theta)] == [("crate", "ring")]


def test_shapes_of_all_kinds_beside_a_mesh(ring):
    """Rows of shapes are as long as the mesh's then: boxes and balls in a ring, deep starts among them, and a run."""
    from add.model.overlaps import deep_starts

    box = {"type": "rigid", "geometry": {"shape": "box", "size": [0.04, 0.04, 0.04]}, "mass": 0.05}
    ball = {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.02}, "mass": 0.05}
    rod = {"type": "rigid", "geometry": {"shape": "capsule", "radius": 0.015, "half_length": 0.02}, "mass": 0.05}
    raw = scene(ring).raw
    raw["bodies"] = {
        "box": box | {"position": [0.1, 0, 0.062], "velocity": [0, 0, -0.5]},
        "ball": ball | {"position": [0.1, 0, 0.09]},  # 12 mm deep in the box
        "rod": rod | {"position": [-0.1, 0, 0.08]},
    }
    built = scene_from_dict(raw).build()
    deep = deep_starts(built.model, built.theta)
    assert [(item.body, item.other, pytest.approx(item.depth)) for item in deep] == [("ball", "box", 0.012)]
    counts, _ = touched(built)
    assert counts["touching"] > 0
