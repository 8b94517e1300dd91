"""Force families of single bodies: one file each."""

from add.terms.activation import Activation, Integral, Lag
from add.terms.added_mass import AddedMass
from add.terms.ball_laws import BallFriction, BallLimits
from add.terms.elastic import Elastic, ElementBatch
from add.terms.gravity import Gravity
from add.terms.held_friction import HeldBalls, HeldBranch, HeldEquations, HeldResistance
from add.terms.inertia import Inertia
from add.terms.joint_drives import JointDrive
from add.terms.joint_laws import BallLaws, JointLimits, JointResistance, JointSprings
from add.terms.lengths import LengthActuator, OnLengths, OnPaths, Path
from add.terms.multipliers import JointCouplings, LinkLoops, PointConstraint, Sums, TiedPoints
from add.terms.muscle import FibreLines, Muscle, VolumetricActuator
from add.terms.nodal_force import NodalForce
from add.terms.pressure import Chamber, GivenVolume, IsothermalGas, Pressure
from add.terms.relaxation import Relaxation
from add.terms.rigid_inertia import RigidInertia
from add.terms.strained import Stencils, Strained
from add.terms.tree_inertia import TreeInertia
from add.terms.viscous import Viscous
from add.terms.wrenches import Wrench
