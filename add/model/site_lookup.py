"""From names of bodies and blocks of theta to sites of the system."""

from __future__ import annotations

from collections.abc import Sequence

from add.bodies import Body, Layouts
from add.equations.site_gathering import NO_INDICES, Site
from add.equations.sites import SiteKind
from add.joints.parts import BodySite
from add.typing import IntArray


def system_site(site: BodySite, bodies: Sequence[Body], at: Layouts) -> Site:
    """Return a site in the numbering of the system."""
    return place_site(site, at.parameters[site.arm].indices if site.arm else NO_INDICES, bodies, at)


def place_site(site: BodySite, arm: IntArray, bodies: Sequence[Body], at: Layouts) -> Site:
    """Return a site whose arm has the indices ``arm`` (3,) in theta."""
    if site.kind is SiteKind.WORLD:
        return Site.of_world(arm)
    body = next(body for body in bodies if body.name == site.body)
    return body.site(site.kind, arm, site.nodes, site.weights, at)
