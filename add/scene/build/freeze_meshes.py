"""Write the meshes of round shapes to a run's folder: it stays as it was run, should a later version mesh otherwise."""

import logging
from pathlib import Path

from add.io.atomic import replacing
from add.io.meshes import write_mesh
from add.scene.build.selections import unscaled_mesh
from add.scene.read.reader import S, apply_overrides
from add.scene.spec.bodies import BoxMeshSpec, FileMeshSpec, SoftBodySpec

logger = logging.getLogger(__name__)


def freeze_meshes(scene: S, folder: Path) -> S:
    """Return the scene with every round shape (sphere, cylinder, torus) replaced by a mesh file.

    Parameters
    ----------
    scene : the scene of a run
    folder : of the run; `folder/meshes/<body>.msh` are written. A file that is already there, from the run that is
        resumed, is kept and used.

    Returns
    -------
    SceneSpec, the same where there is nothing to replace. Boxes stay as they are.

    Notes
    -----
    A body of which an experiment changes the shape is left alone: its shapes are meshed anew. (An experiment that gives
    the body another mesh altogether keeps that one.)
    """
    changes = {path for item in scene.experiments for path in item.overrides}
    overrides = {}
    for name, body in scene.bodies.items():
        if not isinstance(body, SoftBodySpec) or isinstance(body.mesh, FileMeshSpec | BoxMeshSpec):
            continue
        if any(path.startswith(f"bodies.{name}.mesh.") for path in changes):
            continue
        path = folder.absolute() / "meshes" / f"{name}.msh"
        if path.exists():
            logger.info("bodies.%s.mesh: %s is kept", name, path)
        else:
            # tet10 goes to the file with its curved boundary. Where an experiment chooses other elements the file has
            # to be tet4, which `read_mesh` raises to tet10 with straight sides.
            element = "tet4" if f"bodies.{name}.element" in changes else body.element
            mesh = unscaled_mesh(body, element, f"bodies.{name}")
            path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(path) as temporary:
                write_mesh(temporary, mesh)
            logger.info("bodies.%s.mesh: %d elements written to %s", name, mesh.n_elements, path)
        overrides[f"bodies.{name}.mesh"] = {"file": str(path)}
    return apply_overrides(scene, overrides) if overrides else scene
