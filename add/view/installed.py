"""Whether bodies can be drawn: pyvista and VTK are an extra, which a machine without a screen may lack."""

from importlib.util import find_spec

from add.errors import InputError


def require_pyvista() -> None:
    """Refuse to draw where pyvista is not installed.

    Raises
    ------
    InputError
        With the command that installs it.
    """
    if find_spec("pyvista") is None:
        raise InputError("pictures of bodies need pyvista and VTK: pip install 'add-sim[view]'")
