"""Contact: which points touch which shapes (detection), and what pushes back (laws)."""

from add.contact.bodies import BodyContact, ContactPlaces
from add.contact.pairs import FrictionLaw, PairParameters
from add.contact.penalty import PenaltyContact
from add.contact.shapes import Shapes

__all__ = ["BodyContact", "ContactPlaces", "FrictionLaw", "PairParameters", "PenaltyContact", "Shapes"]
