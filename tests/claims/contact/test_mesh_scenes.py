"""Which bodies of a scene meet by their meshes, with which numbers, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh

from add.commands.report_texts import warn_of_contacts
from add.commands.simulate import simulate_scene
from add.contact import MeshContact
from add.equations.kinematics import Kinematics
from add.errors import InputError
from add.io.runfolder import RunFolder
from add.kernels.contact_pairs import BITS, FACE
from add.scene import scene_from_dict
from add.scene.build.built import BuiltScene

CUBE = {"shape": "box", "size": [0.1, 0.1, 0.1], "divisions": [2, 2, 2]}
OVERLAP = {"position": [0.013, 0.007, 0.07]}
SOFT = {"type": "soft", "mesh": CUBE, "material": {"young": 1e5, "poisson": 0.3, "density": 1e3}}
SHEET = {"type": "mass-spring", "mesh": {"shape": "sheet", "size": [0.2, 0.2], "divisions": [4, 4]}, "mass": 0.1,
         "stiffness": 10.0}  # fmt: skip
BOX = {"type": "rigid", "geometry": {"shape": "box", "size": [0.1, 0.1, 0.1]}, "density": 500.0}
SPRING = {"type": "spring", "stiffness": 1.0} | {side: {"body": side, "at": [0, 0, 0]} for side in "ab"}
BALL = {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.05}, "density": 500.0}


def at(body: dict[str, Any], z: float, **more: Any) -> dict[str, Any]:
    return body | {"position": [0.0, 0.0, z]} | more


def built(bodies: dict[str, Any], **more: Any) -> BuiltScene:
    raw = {"schema": "add-scene/1", "time": {"dt": 0.001, "steps": 2}, "bodies": bodies} | more
    return scene_from_dict(raw).build()


def pairs(scene: BuiltScene) -> set[tuple[str, str]]:
    """Return the names of bodies that meet by meshes."""
    terms = scene.model.term(MeshContact)
    if not terms:
        return set()
    owners = [b.name for b in scene.model.bodies if f"bodies.{b.name}.half_thickness" in scene.model.system.parameters]
    meets = terms[0].surface.meets
    return {(owners[a], owners[b]) for a, b in zip(*np.nonzero(np.triu(meets)), strict=True)}


ALL = {"a": at(SOFT, 0.0), "b": at(SOFT, 0.2), "s": at(SHEET, 0.4), "box": at(BOX, 0.6), "ball": at(BALL, 0.8)}


def test_bodies_meet_by_meshes_whose_points_meet_no_shape() -> None:
    assert pairs(built(ALL)) == {("a", "b"), ("a", "s"), ("b", "s")}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"contact": {"between_bodies": False}}, set()),
        ({"contact": {"friction_law": "exact"}}, set()),
        ({"contact": {"friction_law": "impulse"}, "time": {"dt": 0.001, "steps": 2, "integrator": "bdf1"}}, set()),
        ({"contact": {"pairs": [{"between": ["a", "b"], "enabled": False}]}}, {("a", "s"), ("b", "s")}),
        ({"contact": {"pairs": [{"between": ["box", "a"], "by_meshes": True}]}},
         {("a", "b"), ("a", "s"), ("b", "s"), ("a", "box")}),
        ({"contact": {"pairs": [{"between": ["ball", "a"], "by_meshes": True}]}},
         {("a", "b"), ("a", "s"), ("b", "s"), ("a", "ball")}),
        ({"couplings": {"k": SPRING}}, {("a", "s"), ("b", "s")}),
    ],
)  # fmt: skip
def test_who_meets_whom_as_the_scene_says(more: dict[str, Any], expected: set[tuple[str, str]]) -> None:
    assert pairs(built(ALL, **more)) == expected


def test_bodies_meet_themselves_where_asked() -> None:
    bodies = ALL | {"s": at(SHEET, 0.4, contact={"self": True})}
    assert pairs(built(bodies)) == {("a", "b"), ("a", "s"), ("b", "s"), ("s", "s")}


def test_numbers() -> None:
    bodies = {"a": at(SOFT, 0.0, contact={"class": "rubber", "thickness": 0.01}), "b": at(SOFT, 0.2)}
    row = {"between": ["rubber", "b"], "friction": 0.7}
    scene = built(bodies, contact={"stiffness": 100.0, "damping": 2.0, "pairs": [row], "mesh": {"thickness": 0.02}})
    layout, theta = scene.model.system.parameters, scene.theta
    (term,) = scene.model.term(MeshContact)
    area = term.surface.vertex_areas.mean()
    wanted = {"k_n": 100.0 / area, "k_d": 2.0 / area, "k_t": 0.1 / area, "c_f": 0.7, "onset": 0.3 * 0.015}
    for key, value in wanted.items():
        assert layout.view(theta, f"mesh_contact.rubber.b.{key}") == pytest.approx(value), key
    assert layout.view(theta, "bodies.a.half_thickness") == 0.005
    assert layout.view(theta, "bodies.b.half_thickness") == 0.01
    paths = [entry.name for entry in scene.numbers.layout.entries]
    assert {"bodies.a.contact.thickness", "contact.mesh.thickness", "contact.pairs.0.friction"} <= set(paths)
    given = built(bodies, contact={"stiffness_per": "area", "stiffness": 5.0, "mesh": {"damping": 3.0, "onset": 1e-3}})
    layout, theta = given.model.system.parameters, given.theta
    (name,) = {entry.name[:-4] for entry in layout.entries if entry.name.endswith("k_n")}
    found = [float(layout.view(theta, f"{name}.{key}")) for key in ("k_n", "k_d", "k_t", "onset", "ramp")]
    assert found == pytest.approx([5.0, 3.0, 0.005, 1e-3, 1e-3])


@pytest.mark.parametrize(
    ("bodies", "contact", "place", "words"),
    [
        ({"a": at(SOFT, 0.0), "b": at(SOFT, 0.2)}, {"mesh": {"thickness": 0.2}}, "contact.mesh.thickness",
         "thicker than the mesh is wide"),
        ({"a": at(SOFT, 0.0, contact={"thickness": 0.2}), "b": at(SOFT, 0.2)}, {}, "bodies.a.contact.thickness",
         "thicker than the mesh is wide"),
        ({"a": at(BOX, 0.0, contact={"self": True}), "b": at(SOFT, 0.2)}, {}, "bodies.a.contact.self",
         "can meet themselves"),
        ({"a": at(SOFT, 0.0), "b": at(SOFT, 0.2)}, {"pairs": [{"between": ["a", "b"], "restitution": 0.5}]},
         "contact.pairs.0.restitution", "give 'damping' for meshes"),
        ({"a": at(SOFT, 0.0), "b": SOFT | OVERLAP}, {}, "bodies", "surfaces pass through each other at the start"),
    ],
)  # fmt: skip
def test_one_clear_error(bodies: dict[str, Any], contact: dict[str, Any], place: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        built(bodies, contact=contact)
    assert caught.value.place == place and words in str(caught.value)


def test_a_skin_that_is_too_soft_is_named(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """The greatest depth of a run stands in its result; beyond half the reach there is a warning with a remedy."""
    found = []
    for stiffness in (1e8, 1e4):
        raw = {"schema": "add-scene/1", "time": {"dt": 0.002, "steps": 20, "integrator": "bdf1"},
               "bodies": {"low": SOFT | {"pins": [{"where": {"all": True}}]}, "up": at(SOFT, 0.1101)},
               "contact": {"mesh": {"thickness": 0.01, "stiffness": stiffness, "damping": 0.0}}}  # fmt: skip
        result = simulate_scene(scene_from_dict(raw), RunFolder(tmp_path / f"{stiffness:g}"))
        (pair,) = result["mesh_depths"]
        assert pair["bodies"] == ["low", "up"] and pair["stiffness"] == stiffness and 0.0 < pair["depth"] < 0.01
        assert pair["warning"] == (pair["depth"] > 0.5 * pair["reach"]) == (stiffness == 1e4)
        found.append(pair["depth"])
        warn_of_contacts(result)
    assert found[1] > 3.0 * found[0]
    assert caplog.text.count("skins press deep") == 1 and "k_n = 1e+04" in caplog.text


def test_a_blocked_step_names_the_pair() -> None:
    scene = built({"low": at(SOFT, 0.0), "up": at(SOFT, 0.103)}, contact={"mesh": {"thickness": 0.005}})
    (term,) = scene.model.term(MeshContact)
    q, v = scene.model.initial.evaluate(scene.theta)
    text = term.tightest(Kinematics(q, v, np.zeros_like(v), 0.0, 0), scene.theta)
    assert "'low' and 'up' are 0.002 m deep in skins that touch at 0.005 m" in text and "k_n = " in text


def groove(slope: float) -> Any:
    """A block with a valley along y, closed."""
    x, z = np.array([-0.2, 0.0, 0.2, 0.2, -0.2]), np.array([0.2 * slope, 0.0, 0.2 * slope, -0.1, -0.1])
    places = np.concatenate([np.column_stack([x, np.full(5, y), z]) for y in (-0.2, 0.2)])
    sides = [face for k in range(5) for face in ([k, (k + 1) % 5, (k + 1) % 5 + 5], [k, (k + 1) % 5 + 5, k + 5])]
    front = [[0, 3, 1], [1, 3, 2], [0, 4, 3]]
    mesh = trimesh.Trimesh(places, sides + front + [[a + 5, c + 5, b + 5] for a, b, c in front], process=False)
    mesh.fix_normals()
    return mesh


def test_a_ball_in_a_valley_of_a_mesh(tmp_path: Path) -> None:
    """The force of the nearest of two faces jumps in the middle, where no step ends: it keeps a face, or is divided."""
    groove(0.1).export(tmp_path / "groove.stl")
    raw: dict[str, Any] = {
        "schema": "add-scene/1",
        "time": {"dt": 0.004, "steps": 150},
        "bodies": {
            "ball": {"type": "rigid", "geometry": {"shape": "sphere", "radius": 0.025}, "mass": 0.05,
                     "position": [0.004, 0.01, 0.03]}
        },
        "obstacles": {"groove": {"shape": "mesh", "file": str(tmp_path / "groove.stl")}},
        "contact": {"stiffness": 500, "damping": 2, "friction": 0.4, "damping_ramp": 0.002, "mesh": {"stiffness": 1e5}},
    }  # fmt: skip
    for way in ({"substeps": "off"}, {}, {"substeps": "auto"}):
        run = scene_from_dict(raw | {"time": raw["time"] | way}).build().run()
        kept = any((rows[:, BITS] & FACE).any() for record in run.records for rows in record.decisions)
        assert kept == ("auto" not in way.values())
        assert any(record.inner for record in run.records) == (not kept)
        assert abs(run.q[-1, 0]) < 0.005 and 0.023 < run.q[-1, 2] < 0.025, (
            "it rests between the faces, 0.5 N / 500 N/m deep"
        )
    raw["contact"]["pairs"] = [{"between": ["ball", "groove"], "by_meshes": True}]
    run = scene_from_dict(raw).build().run()
    assert abs(run.q[-1, 0]) < 0.005 and 0.025 < run.q[-1, 2] < 0.031, "it rests on both skins"
