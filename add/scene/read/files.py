"""Errors in the files that a scene names."""

from collections.abc import Iterator
from contextlib import contextmanager

from add.errors import InputError


@contextmanager
def asked_for_by(place: str) -> Iterator[None]:
    """Let an error in a file say which file it is and which place of the scene asked for it.

    Parameters
    ----------
    place : JSON path of what names the file. The error's own `file` and `place`, if it has any, go to the front of its
        message, since whoever builds the scene writes the scene's there.
    """
    try:
        yield
    except InputError as error:
        if error.file is not None:
            parts = (error.file, error.place, error.message)
            error.message = ": ".join(str(part) for part in parts if part is not None)
            error.file, error.place = None, place
        elif error.place is None:
            error.place = place
        raise


@contextmanager
def about_robot(model: str | None) -> Iterator[None]:
    """Let an error of an articulated body name the robot's file and the mesh that it is about, before its message.

    Parameters
    ----------
    model : the robot's file; None of a tree that the scene writes down
    """
    try:
        yield
    except InputError as error:
        if error.file is not None:
            error.message, error.file = f"{error.file}: {error.message}", None
        if model is not None and model not in str(error):
            error.message = f"{model}: {error.message}"
        raise


@contextmanager
def named_file(path: str) -> Iterator[None]:
    """Let an error in what a file holds name the file."""
    try:
        yield
    except InputError as error:
        error.file = error.file or path
        raise
