"""Where a run goes, and what it is called."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from add.io.runfolder import SCENE, VERSIONS, RunFolder
from add.scene.reader import Scene


def new_run(scene: Scene, path: Path, *, force: bool) -> RunFolder:
    """Return an empty run folder.

    Parameters
    ----------
    scene : the one to be run; meshes that it reads stay where they are
    path : of the folder
    force : whether a run that is there already is thrown away

    Raises
    ------
    InputError
        If there is a run, or something else, or it cannot be removed.
    """
    folder = RunFolder(path, overwrite=force)
    clear(folder, scene)
    return folder


def clear(folder: RunFolder, scene: Scene) -> None:
    """Remove the run that is in a folder, but no mesh that the scene reads: it may be the scene of that very run."""
    folder.clear(keep=[Path(text) for text in _texts(scene.raw) if text.endswith(".msh")])


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict | list):
        for item in node.values() if isinstance(node, dict) else node:
            yield from _texts(item)


def title(scene: Scene) -> str:
    """Return a scene's name; without one the file's, and the folder's for the ``scene.json`` of a run."""
    if scene.spec.name or scene.source is None:
        return scene.spec.name or ""
    path = scene.source.absolute()
    if path.name == SCENE and (path.parent / VERSIONS).is_file():
        return path.parent.name
    return path.stem
