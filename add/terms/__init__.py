"""Force families of single bodies: one file each."""

from add.terms.elastic import Elastic, ElementBatch, Stencils, Strained, Viscous
from add.terms.held_friction import HeldBranch, HeldEquations, HeldResistance
from add.terms.inertia import AddedMass, Gravity, Inertia
from add.terms.joint_laws import BallFriction, BallLaws, BallLimits, JointLimits, JointResistance, JointSprings
from add.terms.lengths import LengthActuator, OnLengths, OnPaths, Path
from add.terms.loads import NodalForce, PointConstraint, Wrench
from add.terms.memories import Activation, Integral, Lag, Relaxation
from add.terms.multipliers import JointCouplings, LinkLoops, Sums, TiedPoints
from add.terms.muscle import FibreLines, Muscle, VolumetricActuator
from add.terms.pressure import Chamber, GivenVolume, IsothermalGas, Pressure
from add.terms.rigid_inertia import RigidInertia, TreeInertia
