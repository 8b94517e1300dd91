"""Checks of scenes with exact contact: what it cannot do is refused when the scene is read, and never ignored."""

from collections.abc import Iterator

from add.scene.read.problems import Problem
from add.scene.spec.scene import SceneSpec


def check_exact_contact(spec: SceneSpec) -> Iterator[Problem]:
    """Starts and restitutions that exact contact has no equations for."""
    if spec.contact.friction_law != "exact":
        return
    if spec.time.initial == "equilibrium":
        yield Problem("time.initial", "exact contact starts from a given state", "'equilibrium'", "'given'")
    for k, pair in enumerate(spec.contact.pairs):
        if pair.restitution is not None:
            yield Problem(
                f"contact.pairs.{k}.restitution", "impacts of exact contact are plastic", f"{pair.restitution:g}",
                "none, or another contact.friction_law",
            )  # fmt: skip
