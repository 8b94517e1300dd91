"""The place and the name of a run."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from add.io.runfolder import SCENE, VERSIONS, RunFolder, versions
from add.scene import Scene
from add.scene.spec.extension import extension_versions

_log = logging.getLogger(__name__)


def locking(command: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a job, a function of a scene and a run folder, keep other processes from the folder while it works."""

    def decorate(job: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(job)
        def wrapped(scene: Scene, folder: RunFolder, *arguments: Any, **options: Any) -> Any:
            with folder.locked(command):
                return job(scene, folder, *arguments, **options)

        return wrapped

    return decorate


@contextmanager
def run_in(scene: Scene, path: Path, command: str, *, force: bool = False, resume: bool = False) -> Iterator[RunFolder]:
    """Give a locked run folder: an empty one, or one with a run to go on with.

    Parameters
    ----------
    scene : the one to be run; meshes that it reads stay where they are
    path : of the folder
    command : of `add`, to be named to others
    force : whether a run that is there already is thrown away
    resume : whether the run that is there goes on

    Raises
    ------
    InputError
        If there is a run, or something else, or another process works there, or the run cannot be removed.
    """
    folder = RunFolder(path, create=False) if resume else RunFolder(path, overwrite=force)
    with folder.locked(command):
        if not resume:
            clear(folder, scene)
        yield folder


def note_versions(folder: RunFolder, scene: Scene, *, resume: bool) -> None:
    """Write with what a run is made; of one that goes on, say where that is something else than it was begun with."""
    now = versions() | extension_versions(scene)
    if resume and folder.versions.is_file():
        before = folder.read_json(VERSIONS)
        changed = [f"{key} {before.get(key, 'unknown')} -> {now[key]}" for key in now if before.get(key) != now[key]]
        if changed:
            _log.warning(
                "%s: this run was begun with other versions (%s): what follows may differ from what it would have been",
                folder.path,
                ", ".join(changed),
            )
    folder.write_json(VERSIONS, now)


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
    if scene.name or scene.source is None:
        return scene.name or ""
    path = scene.source.absolute()
    if path.name == SCENE and (path.parent / VERSIONS).is_file():
        return path.parent.name
    return path.stem
