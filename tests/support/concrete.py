"""All concrete classes of the package below a base: registries of test cases are compared with them."""

import importlib
import inspect
import pkgutil

import add

# Layers above the physics: they drive or draw, and define no term.
NO_PHYSICS = (
    "add.commands",
    "add.view",
    "add.plot",
    "add.gym",
    "add.jax",
    "add.torch",
    "add.commands.console",
    "add.commands.cli",
    "add.__main__",
)


def concrete(base: type) -> set[type]:
    """All concrete subclasses of ``base`` in the package."""
    for module in pkgutil.walk_packages(add.__path__, "add."):
        if not module.name.startswith(NO_PHYSICS):
            importlib.import_module(module.name)
    found, open_ = set(), [base]
    while open_:
        for kind in open_.pop().__subclasses__():
            open_.append(kind)
            if not inspect.isabstract(kind) and kind.__module__.startswith("add."):
                found.add(kind)
    return found
