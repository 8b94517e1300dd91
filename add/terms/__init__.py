"""Force families: one file each."""

from add.terms.anchor import Anchor
from add.terms.elastic import Elastic, ElementBatch
from add.terms.gravity import Gravity
from add.terms.inertia import Inertia
from add.terms.load import Load
from add.terms.viscous import Viscous

__all__ = ["Anchor", "Elastic", "ElementBatch", "Gravity", "Inertia", "Load", "Viscous"]
