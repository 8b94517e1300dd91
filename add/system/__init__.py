"""Where forces are summed: a system, its equations on given branches, and the matrix of a step."""

from add.system.assembler import Assembler
from add.system.frozen import FrozenSystem, largest_norm
from add.system.system import System

__all__ = ["Assembler", "FrozenSystem", "System", "largest_norm"]
