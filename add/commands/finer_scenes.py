"""The scenes of a convergence study: the same physics with shorter steps or finer meshes."""

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from add.errors import InputError
from add.geometry.mesh_box import refined
from add.io.meshes import write_mesh
from add.machine.files import parse_json, read_regular
from add.scene import Scene, apply_overrides, scene_from_dict
from add.scene.build.scene import with_contact
from add.scene.build.selections import body_mesh
from add.scene.spec.bodies import BoxMeshSpec, FileMeshSpec, SoftBodySpec

_MOST_BYTES = 2**20


def meshed(scene: Scene) -> list[str]:
    """Return the names of the bodies whose meshes are refined."""
    return [name for name, body in scene.bodies.items() if isinstance(body, SoftBodySpec)]


def with_shorter_steps(scene: Scene, factor: int) -> Scene:
    """Return the scene with its step, and those of its experiments, divided by ``factor``.

    k_t of friction, which is k_n dt where the scene does not say it, stays what it was: the law is not to change with
    the step.
    """
    scene = with_contact(scene)
    raw = copy.deepcopy(scene.raw)
    time = raw["time"]
    before = scene.time.dt
    time["dt"] = before / factor
    if time.get("steps") is not None:
        time["steps"] *= factor
    for item in raw.get("experiments", []):
        own = item.get("overrides", {})
        if "time.dt" in own:
            own["time.dt"] /= factor
        if own.get("time.steps") is not None:
            own["time.steps"] *= factor
        if any(key == "time" or key == "contact" for key in own):
            raise InputError(
                "an experiment overrides a whole section, which a convergence study cannot change",
                file=scene.source,
                found="'time' or 'contact'",
                expected="paths such as 'time.dt'",
            )
    contact = scene.contact
    if contact.friction_law in ("linear", "tanh", "hybrid"):
        rule = 2.0 / 3.0 if contact.stick_stiffness_rule == "effective-dt" and scene.time.integrator == "bdf2" else 1.0
        own_contact = raw.setdefault("contact", {})
        if contact.stick_stiffness is None:
            own_contact["stick_stiffness"] = (contact.stiffness or 0.0) * rule * before
            for section, said in (("nodes", contact.nodes), ("mesh", contact.mesh)):
                if said.stiffness is not None and said.stick_stiffness is None:
                    own_contact.setdefault(section, {})["stick_stiffness"] = said.stiffness * rule * before
        for k, pair in enumerate(contact.pairs):
            if pair.stiffness is not None and pair.stick_stiffness is None:
                own_contact["pairs"][k]["stick_stiffness"] = pair.stiffness * rule * before
    return _again(raw, scene)


def with_finer_meshes(scene: Scene, folder: Path) -> tuple[Scene, tuple[str, ...]]:
    """Return the scene with every soft body's mesh half as wide, and the names of those bodies.

    Shapes that the scene meshes are meshed anew, with their true surface; the elements of a file are cut into eight,
    its boundary stays as it is.

    Parameters
    ----------
    scene : Scene
    folder : where meshes are written
    """
    scene = with_contact(scene)
    overrides: dict[str, Any] = {}
    names = []
    for name, body in scene.bodies.items():
        if not isinstance(body, SoftBodySpec):
            continue
        names.append(name)
        place, mesh = f"bodies.{name}.mesh", body.mesh
        if isinstance(mesh, BoxMeshSpec):
            overrides[f"{place}.divisions"] = [2 * n for n in mesh.divisions]
            if mesh.hollows:
                overrides[f"{place}.hollows"] = [[[2 * n for n in end] for end in ends] for ends in mesh.hollows]
        elif isinstance(mesh, FileMeshSpec):
            path = folder / f"{name}_{len(list(folder.glob('*.msh')))}.msh"
            write_mesh(path, refined(body_mesh(body.model_copy(update={"scale": 1.0}), f"bodies.{name}")))
            overrides[place] = {"file": str(path)}
        else:
            overrides[f"{place}.edge"] = 0.5 * mesh.edge
    return (apply_overrides(scene, overrides) if overrides else scene), tuple(names)


def overridden(scene: Scene, path: str | Path) -> Scene:
    """Return the scene with the overrides of a JSON file, whose file paths count from that file's folder.

    Raises
    ------
    InputError
        naming the file.
    """
    path = Path(path)
    try:
        found = parse_json(read_regular(path, most=_MOST_BYTES).decode("utf-8"), path)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {error}", file=path, expected="a JSON object of overrides") from None
    if not isinstance(found, dict) or not found:
        raise InputError("no overrides", file=path, expected='such as {"bodies.ball.mesh": {"file": "fine.msh"}}')
    return apply_overrides(scene, {key: _absolute(value, path.absolute().parent) for key, value in found.items()})


def doubts(scene: Scene) -> list[str]:
    """Return what a finer mesh changes besides the mesh."""
    texts = []
    soft = meshed(scene)
    touching = bool(scene.obstacles) or len(scene.bodies) > 1
    if soft and touching and scene.contact.stiffness_per == "node" and scene.contact.friction_law != "exact":
        texts.append(
            "contact.stiffness counts per node: a finer mesh is a stiffer floor, which is no error of the mesh; "
            '"stiffness_per": "area" does not change with it'
        )
    files = [name for name in soft if isinstance(getattr(scene.bodies[name], "mesh", None), FileMeshSpec)]
    if files:
        texts.append(
            f"the mesh of {', '.join(files)} is a file: its elements are cut, its boundary stays what it is; what a "
            "rounder boundary would change is only seen with a finer mesh of the same body (`--finer`)"
        )
    return texts


def _absolute(value: Any, folder: Path) -> Any:
    if isinstance(value, Mapping):
        return {
            key: str(folder / item)
            if key == "file" and isinstance(item, str) and "${" not in item
            else _absolute(item, folder)
            for key, item in value.items()
        }
    return value


def _again(raw: dict[str, Any], scene: Scene) -> Scene:
    return scene_from_dict(json.loads(json.dumps(raw)), folder=scene.source.parent if scene.source else None)
