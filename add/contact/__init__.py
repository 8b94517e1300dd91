"""Contact: which points touch which shapes (detection), and what pushes back (laws)."""

from add.contact.bodies import BodyContact, ContactPlaces
from add.contact.penalty import FrictionLaw, PairParameters, PenaltyContact
from add.contact.shapes import Shapes

__all__ = ["BodyContact", "ContactPlaces", "FrictionLaw", "PairParameters", "PenaltyContact", "Shapes"]
