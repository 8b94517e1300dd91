"""Cloth and rods of scenes: files, patterns, seams, what holds them, what is refused, what is doubted."""

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.places import SPECS

import add
from add.contact import MeshContact
from add.errors import InputError
from add.io.trajectory_parts import MassSpringData
from add.linalg import factorization_for
from add.model import half_thickness, meeting_meshes
from add.scene.build.built import BuiltScene
from add.scene.build.doubts import doubts
from add.view.quantities import sheet_stretching

MESHES = SPECS / "deformables/reference/meshes"
CLOTH = {
    "type": "cloth", "mesh": {"shape": "rectangle", "size": [0.4, 0.3], "cells": [4, 3]},
    "material": {
        "density": 0.2, "thickness": 1e-3, "membrane": {"young": 5e4, "poisson": 0.3}, "bending": {"stiffness": 1e-5},
    },
}  # fmt: skip


def scene(*, steps: int = 5, **cloth: object) -> dict:
    return {"schema": "add-scene/1", "time": {"dt": 0.01, "steps": steps}, "bodies": {"cloth": CLOTH | cloth}}


def changed(path: str, value: object) -> dict:
    """Return the scene with another value under a path of the cloth."""
    out = copy.deepcopy(scene())
    *keys, last = path.split(".")
    node = out["bodies"]["cloth"]
    for key in keys:
        node = node[key]
    node[last] = value
    return out


def build(given: dict) -> BuiltScene:
    return add.scene_from_dict(given).build()


def written(path: Path, points: list, faces: list, pattern: list | None = None) -> str:
    """Write an .obj; faces of (vertex, place in the pattern) from one."""
    lines = [f"v {x} {y} {z}" for x, y, z in points] + [f"vt {u} {v}" for u, v in pattern or []]
    lines += ["f " + " ".join(f"{a}/{b}" if pattern else f"{a}" for a, b in face) for face in faces]
    path.write_text("\n".join(lines))
    return str(path)


TABLE = {"model": "table", "strains": [0, 0.1], "k11": [1, 2], "k22": [1, 2], "k33": [1, 1]}
SQUARE = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]


def plain(*faces: tuple[int, ...]) -> list:
    return [[(node, node) for node in face] for face in faces]


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("material.thickness", 0, ("bodies.cloth.material.thickness",)),
        ("material.thickness", None, ("act on a thickness", "a length [m]")),
        ("material.membrane", {"model": "baraff-witkin", "k_u": 1, "k_v": 1, "k_s": 1}, ("no force depends on",)),
        ("material.membrane", {"model": "orthotropic", "k11": 1, "k22": 1, "k12": -2, "k33": 1}, ("not stable", "k12")),
        ("material.membrane", TABLE | {"strains": [0.1, 0.2]}, ("strains", "0 first, then ascending")),
        ("material.membrane", TABLE | {"strains": [0, 0]}, ("strains", "0 first, then ascending")),
        ("material.membrane", TABLE | {"k22": [1]}, ("a stiffness for each strain", "1 numbers", "k22")),
        ("material.membrane", TABLE | {"k12": 1}, ("not stable", "k12")),
        ("material.membrane.poisson", 1.0, ("bodies.cloth.material.membrane.poisson",)),
        ("material.bending", {"model": "paper"}, ("'hinge' or 'plate'",)),
        ("material.membrane", {"model": "formula", "energy": "a*C11", "numbers": {"a": 1}}, ("not free of stress",)),
        ("material.membrane", {"model": "formula", "energy": "a*(C11-1)**2", "numbers": {"a": 1}}, ("not stable",)),
        ("material.membrane", {"model": "formula", "energy": "a*log(C12)", "numbers": {"a": 1}}, ("no value at rest",)),
        ("material.membrane", {"model": "formula", "energy": "a*C13", "numbers": {"a": 1}}, ("C13",)),
        ("material.membrane", {"model": "formula", "energy": "C12**2", "numbers": {"a": 1}}, ("numbers.a",)),
        ("rest", "uv", ("no texture coordinates",)),
        ("warp", [0, 0, 0], ("no direction", "warp")),
        ("seams", [{"a": [0, 1], "b": [2], "stiffness": 1}], ("do not fit", "2 and 1 nodes")),
        ("seams", [{"a": [0, 1], "b": [2, 10], "stiffness": 1}], ("do not fit", "m long")),
        ("seams", [{"a": [0], "b": [99], "stiffness": 1}], ("two different nodes", "0..19")),
    ],
)  # fmt: skip
def test_bad_numbers(path: str, value: object, words: tuple[str, ...]) -> None:
    """One error that names the place and what was expected."""
    with pytest.raises(InputError) as error:
        build(changed(path, value))
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("points", "faces", "words"),
    [
        ([*SQUARE, [0, 0, 1]], plain((1, 2, 3), (1, 3, 4), (3, 1, 5)), ("more than two triangles", "nodes 0 and 2")),
        (SQUARE, plain((1, 2, 3), (1, 4, 3)), ("wound against each other", "1 such edges")),
        ([*SQUARE, [0.5, -1e-4, 0]], plain((1, 5, 2), (1, 2, 3), (1, 3, 4)), ("1 of 3 triangles are slivers",)),
        ([*SQUARE, [5, 5, 5]], plain((1, 2, 3)), ("nodes without triangles", "2 of 5")),
        (SQUARE, plain((1, 2, 9)), ("'v' that is not there",)),
        (SQUARE, [], ("no triangles",)),
        ([*SQUARE[:3], ["x", 0, 0]], plain((1, 2, 3)), ("line 4",)),
        (SQUARE, plain((1, 2, 3), (1, 3, 4), (1, 2)), ("line 7", "f 1 2")),
        (SQUARE, plain((1, 2, 3), (1, 3, 10**20)), ("line 6",)),
        ([[1e-200 * x for x in point] for point in SQUARE], plain((1, 2, 3), (1, 3, 4)), ("2 of 2", "slivers")),
    ],
)  # fmt: skip
def test_bad_meshes(points: list, faces: list, words: tuple[str, ...], tmp_path: Path) -> None:
    """One error for what is no cloth."""
    file = written(tmp_path / "cloth.obj", points, faces)
    with pytest.raises(InputError) as error:
        build(changed("mesh", {"file": file}))
    for word in (*words, "bodies.cloth.mesh"):
        assert word in str(error.value)


WOVEN = {"density": 0.2, "membrane": {"model": "orthotropic", "k11": 100, "k22": 10, "k33": 1}}


def test_the_warp_is_a_direction() -> None:
    """Its length is nothing; where it stands upright a membrane with directions has none, and others need none."""
    one, tiny = (build(scene(material=WOVEN, warp=warp)) for warp in ([1, 2, 0], [1e-9, 2e-9, 0]))
    assert np.array_equal(*(built.model.body("cloth").gradients for built in (one, tiny)))
    with pytest.raises(InputError, match=r"cloth.warp.*upright.*24 of 24") as error:
        build(scene(material=WOVEN, warp=[0, 0, 1]))
    assert "lies along" in str(error.value)
    texts = doubts(build(scene(warp=[0, 0, 1])))
    assert any(text.startswith("bodies.cloth.warp: nothing reads this") for text in texts)
    assert not any("warp" in text for text in doubts(one))


def test_cloth_that_does_not_hang_together_is_doubted(tmp_path: Path) -> None:
    """Nodes that a file has twice are cuts, unless a seam joins them."""
    points = [*SQUARE[:3], SQUARE[0], SQUARE[2], SQUARE[3]]
    given = changed("mesh", {"file": written(tmp_path / "cloth.obj", points, plain((1, 2, 3), (4, 5, 6)))})
    texts = " ".join(doubts(build(given)))
    assert "bodies.cloth.mesh: 4 nodes, such as 0, lie where others do" in texts
    assert "bodies.cloth.material.bending: nothing reads this" in texts
    given["bodies"]["cloth"]["seams"] = [{"a": [0, 2], "b": [3, 4], "stiffness": 10}]
    assert "lie where others do" not in " ".join(doubts(build(given)))


def test_a_rod_of_one_segment_does_not_bend() -> None:
    rod = {"type": "rod", "mesh": {"points": [[0, 0, 0], [1, 0, 0]]}, "density": 1, "stretching": 1, "bending": 1}
    given = scene() | {"bodies": {"rod": rod}}
    assert any(text.startswith("bodies.rod.bending: nothing reads this") for text in doubts(build(given)))
    rod["mesh"] = {"shape": "line", "length": 1, "segments": 2}
    assert not any("bending" in text for text in doubts(build(given)))


def test_a_wind_that_is_not_there() -> None:
    given = scene() | {"couplings": {"air": {"type": "air", "body": "cloth", "wind": {"signal": "gust"}}}}
    with pytest.raises(InputError, match=r"couplings.air.wind.signal.*gust"):
        add.scene_from_dict(given)


def test_a_shape_without_stress_has_the_triangles_of_the_mesh(tmp_path: Path) -> None:
    one = written(tmp_path / "one.obj", SQUARE, plain((1, 2, 3), (1, 3, 4)))
    other = written(tmp_path / "other.obj", SQUARE, plain((1, 2, 4), (2, 3, 4)))
    with pytest.raises(InputError, match="has other triangles"):
        build(
            changed("mesh", {"file": one})
            | {"bodies": {"cloth": CLOTH | {"mesh": {"file": one}, "rest": {"file": other}}}}
        )


def test_a_pattern_cut_at_a_seam(tmp_path: Path) -> None:
    """Pieces that lie apart in the pattern are sewn where they share nodes; it weighs and stretches as the pattern."""
    folded = [[0, 0, 0], [0, 1, 0], [0.5, 0, 0.5], [0.5, 1, 0.5], [1, 0, 0], [1, 1, 0]]
    pattern = [[0, 0], [0, 1], [0.5, 0], [0.5, 1], [2, 0], [2, 1], [2.5, 0], [2.5, 1]]
    faces = [[(1, 1), (3, 3), (4, 4)], [(1, 1), (4, 4), (2, 2)], [(3, 5), (5, 7), (6, 8)], [(3, 5), (6, 8), (4, 6)]]
    given = changed("mesh", {"file": written(tmp_path / "cloth.obj", folded, faces, pattern)})
    given["bodies"]["cloth"] |= {"rest": "uv"}
    built = build(given)
    body = built.model.body("cloth")
    assert body.extent == pytest.approx(1.0)
    data = MassSpringData("cloth", 0, body.points, body.edges, body.triangles, body.gradients)
    assert sheet_stretching(data, body.points.ravel()) == pytest.approx(np.sqrt(2.0) - 1.0)
    membrane, hinges = body.layers
    assert membrane.cells.shape[0] == 4
    assert hinges.shape[:, 0] == pytest.approx(0.0)  # no angle at rest
    bent = build(changed("mesh", given["bodies"]["cloth"]["mesh"])).model.body("cloth").layers[1]
    assert sorted(np.abs(bent.shape[:, 0])) == pytest.approx([0.0, 0.0, np.pi / 2.0])


@pytest.mark.skipif(not MESHES.exists(), reason="shared/specs with the meshes is not there")
def test_a_file_with_a_flat_pattern() -> None:
    """Texture coordinates of a flat mesh say the same as the mesh."""
    file = {"file": str(MESHES / "cloth_8_irregular.obj")}
    runs = [build(scene(mesh=file, rest=rest)) for rest in ("mesh", "uv")]
    one, other = (built.model.body("cloth") for built in runs)
    assert one.extent == pytest.approx(other.extent, rel=1e-5)
    assert one.layers[0].cells.shape == (128, 3)


def test_a_seam_closes() -> None:
    """Two sides that are sewn meet, and the tube that they make hangs together."""
    cells = (6, 2)
    left, right = [list(range(3)), list(range(18, 21))]
    given = scene(
        steps=80, mesh={"shape": "rectangle", "size": [0.4, 0.1], "cells": list(cells)},
        seams=[{"a": left, "b": right, "stiffness": 20.0, "damping": 0.1}],
    )  # fmt: skip
    given["gravity"] = [0, 0, 0]
    given["bodies"]["cloth"]["material"] = CLOTH["material"] | {"rayleigh_mass": 3.0}
    # Not quite flat, so that it knows where to bend.
    given["bodies"]["cloth"] |= {"loads": [{"where": {"box": {"min": [-0.05, None, None], "max": [0.05, None, None]}},
                                            "force": [0, 0, 0.01]}]}  # fmt: skip
    x = build(given).run().q[-1].reshape(-1, 3)
    assert np.linalg.norm(x[left] - x[right], axis=1).max() < 0.02


@pytest.mark.parametrize("holder", ["rigid", "soft"])
def test_what_holds_a_cloth(holder: str) -> None:
    """Nodes are attached to a rigid body, and tied to places of a soft one; the cloth hangs from it."""
    box = {
        "type": "rigid",
        "geometry": {"shape": "box", "size": [0.1, 0.3, 0.02]},
        "mass": 1e4,
        "position": [-0.25, 0, 0],
    }
    soft = {
        "type": "soft", "mesh": {"shape": "box", "size": [0.1, 0.3, 0.05], "divisions": [1, 3, 1]},
        "material": {"young": 1e5, "poisson": 0.3, "density": 500}, "position": [-0.25, 0, 0],
        "pins": [{"where": {"box": {"max": [-0.049, None, None]}}}],
    }  # fmt: skip
    given = scene(steps=20, collision=False)
    given["bodies"]["holder"] = box if holder == "rigid" else soft
    if holder == "rigid":
        given["bodies"]["holder"] |= {"collision": {"points": False, "shape": False}}
        side = {"box": {"max": [-0.19, None, None]}}
        given["couplings"] = {"held": {"type": "attachment", "nodes": "cloth", "body": "holder", "where": side,
                                       "stiffness": 1e4, "damping": 10}}  # fmt: skip
    else:
        given["couplings"] = {
            f"tie{k}": {"type": "ball", "a": {"body": "cloth", "at": [-0.2, y, 0]}, "b": {"body": "holder"},
                        "stiffness": 1e3, "damping": 1}
            for k, y in enumerate((-0.15, 0.15))
        }  # fmt: skip
    built = build(given)
    run = built.run()
    rows = built.model.system.dofs["cloth"]
    x = run.q[:, rows.start : rows.stop].reshape(len(run.q), -1, 3)
    start = run.q[-1, built.model.system.dofs["holder"].start + 2] if holder == "rigid" else 0.0
    edge = x[-1][[0, 3], 2] - start  # the box falls, too
    assert np.abs(edge).max() < 0.02
    assert x[-1][:, 2].min() < (start - 0.05 if holder == "soft" else start)


def test_a_stiff_thin_cloth_is_doubted() -> None:
    """Constant strains lock where stretching is so much stiffer than bending; a word with the ratio, one for each."""
    few = [text for text in doubts(build(changed("material.membrane.young", 1e9))) if "bend along their edges" in text]
    assert len(few) == 1 and "bodies.cloth.material.membrane" in few[0]
    assert not [text for text in doubts(build(scene())) if "bend along their edges" in text]


def test_strains_of_a_stretched_cloth() -> None:
    """Colours of strain are the largest principal stretch less one."""
    body = build(scene()).model.body("cloth")
    data = MassSpringData("cloth", 0, body.points, body.edges, body.triangles, body.gradients)
    x = body.points * [1.2, 0.9, 1.0]
    assert sheet_stretching(data, x.ravel()) == pytest.approx(0.2)


def test_terms_and_compiled_steps_agree() -> None:
    """Steps of terms end where compiled ones do."""
    given = scene(steps=8, collision=False, pins=[{"where": {"nodes": [0]}}])
    given["bodies"]["rod"] = {
        "type": "rod", "mesh": {"shape": "line", "length": 0.3, "segments": 4}, "density": 0.02, "stretching": 20.0,
        "bending": 1e-4, "position": [0, 0.5, 0], "velocity": [0, 0, 1], "pins": [{"where": {"nodes": [0]}}],
        "collision": False,
    }  # fmt: skip
    built = build(given)
    assert built.simulation.packed is not None
    plain_run = replace(built.simulation, solver=lambda n: factorization_for(n)).run()
    assert np.abs(built.run().q - plain_run.q).max() < 1e-11


@pytest.mark.parametrize(("share", "doubted"), [(0.99, False), (1.01, True)])
def test_skins_that_are_too_thick_for_their_mesh_are_doubted(share: float, doubted: bool) -> None:
    """The nearest primitives without a common node are a corner and the diagonal beside it, 0.1 m / sqrt(2) apart."""
    thickness = share * 0.1 / np.sqrt(2.0) / 1.5
    texts = " ".join(doubts(build(scene(contact={"self": True, "thickness": thickness}))))
    assert ("of its mesh without a common node are so near at rest" in texts) == doubted
    assert ("below 0.047 m they meet" in texts) == doubted


@pytest.mark.parametrize(("own", "share"), [(True, 0.98), (False, None)])
def test_a_cloth_that_meets_itself_and_says_no_thickness_is_as_thick_as_its_mesh_allows(own, share) -> None:
    """0.98 of two thirds of the least distance at rest, doubted by nobody; else by mesh width and size alone."""
    mesh = {"shape": "rectangle", "size": [0.4, 0.4], "cells": [14, 14], "diagonals": "irregular"}
    given = scene(contact={"self": own}, mesh=mesh)
    given["bodies"]["other"] = {
        "type": "kinematic", "geometry": {"shape": "box", "size": [1, 1, 1]}, "position": [0, 0, -9],
    }  # fmt: skip
    given["contact"] = {"pairs": [{"between": ["cloth", "other"], "by_meshes": True}]}
    built = build(given)
    (term,) = built.model.term(MeshContact)
    start = built.model.system.parameters["bodies.cloth.half_thickness"].start
    half, full = built.theta[start], half_thickness(meeting_meshes(built.model.bodies, built.model.contact).meshes[0])
    if share is None:
        assert half == full
        return
    thick = built.theta.copy()
    thick[start] = full
    ((_, number, least),) = term.near_at_rest(thick)
    assert number > 0 and not term.near_at_rest(built.theta)
    assert half == pytest.approx(share * 0.5 * least / 1.5) and 0.25 * full < half < full
