"""The objects of a scene under the names by which Python makes them: `add.SoftBody(mesh=add.SphereMesh(...))`."""

from add.scene.spec.bodies import (
    AnchorSpec as PointAnchor,
)
from add.scene.spec.bodies import (
    BoxMeshSpec as BoxMesh,
)
from add.scene.spec.bodies import (
    CylinderMeshSpec as CylinderMesh,
)
from add.scene.spec.bodies import (
    FileMeshSpec as FileMesh,
)
from add.scene.spec.bodies import (
    LoadSpec as NodalLoad,
)
from add.scene.spec.bodies import (
    MaterialSpec as Material,
)
from add.scene.spec.bodies import (
    MooneyRivlinMaterialSpec as MooneyRivlinMaterial,
)
from add.scene.spec.bodies import (
    PinSpec as Pin,
)
from add.scene.spec.bodies import (
    PointMassSpec as PointMass,
)
from add.scene.spec.bodies import (
    SoftBodySpec as SoftBody,
)
from add.scene.spec.bodies import (
    SphereMeshSpec as SphereMesh,
)
from add.scene.spec.bodies import (
    TorusMeshSpec as TorusMesh,
)
from add.scene.spec.common import (
    AllSelectorSpec as AllSelector,
)
from add.scene.spec.common import (
    BallSpec as BallRegion,
)
from add.scene.spec.common import (
    BodyContactSpec as BodyContact,
)
from add.scene.spec.common import (
    BoxSelectorSpec as BoxSelector,
)
from add.scene.spec.common import (
    BoxSpec as BoxRegion,
)
from add.scene.spec.common import (
    NodesSelectorSpec as NodesSelector,
)
from add.scene.spec.common import (
    SignalReferenceSpec as SignalReference,
)
from add.scene.spec.common import (
    SphereSelectorSpec as SphereSelector,
)
from add.scene.spec.common import (
    SurfaceSelectorSpec as SurfaceSelector,
)
from add.scene.spec.couplings import (
    AttachmentSpec as Attachment,
)
from add.scene.spec.couplings import (
    BallSpec as BallJoint,
)
from add.scene.spec.couplings import (
    CableSpec as Cable,
)
from add.scene.spec.couplings import (
    EndSpec as End,
)
from add.scene.spec.couplings import (
    FixedSpec as FixedJoint,
)
from add.scene.spec.couplings import (
    ForceSpec as Force,
)
from add.scene.spec.couplings import (
    HingeSpec as HingeJoint,
)
from add.scene.spec.couplings import (
    HingeStartSpec as HingeStart,
)
from add.scene.spec.couplings import (
    JointFrictionSpec as JointFriction,
)
from add.scene.spec.couplings import (
    LimitsSpec as Limits,
)
from add.scene.spec.couplings import (
    MotorSpec as Motor,
)
from add.scene.spec.couplings import (
    SliderSpec as SliderJoint,
)
from add.scene.spec.couplings import (
    SpringSpec as Spring,
)
from add.scene.spec.couplings import (
    TorqueSpec as Torque,
)
from add.scene.spec.markers import (
    AngleSourceSpec as AngleSource,
)
from add.scene.spec.markers import (
    CenterMarkerSpec as CenterMarker,
)
from add.scene.spec.markers import (
    DirectionMarkerSpec as DirectionMarker,
)
from add.scene.spec.markers import (
    ExperimentSpec as ExperimentRun,
)
from add.scene.spec.markers import (
    JointAngleSpec as JointAngle,
)
from add.scene.spec.markers import (
    MaskSpec as Mask,
)
from add.scene.spec.markers import (
    NodesMarkerSpec as NodesMarker,
)
from add.scene.spec.markers import (
    PointMarkerSpec as PointMarker,
)
from add.scene.spec.markers import (
    PoseSourceSpec as PoseSource,
)
from add.scene.spec.markers import (
    RecordingSpec as RecordedMotion,
)
from add.scene.spec.markers import (
    RegisterSpec as Register,
)
from add.scene.spec.markers import (
    SurfaceMarkerSpec as SurfaceMarker,
)
from add.scene.spec.objective import (
    LineObjectiveSpec as LineObjective,
)
from add.scene.spec.objective import (
    MarkersObjectiveSpec as MarkersObjective,
)
from add.scene.spec.objective import (
    OptimizerSpec as OptimizerSettings,
)
from add.scene.spec.objective import (
    ParameterSpec as FitParameter,
)
from add.scene.spec.objective import (
    PhaseSpec as OptimizerPhase,
)
from add.scene.spec.objective import (
    PointObjectiveSpec as PointObjective,
)
from add.scene.spec.objective import (
    PoseObjectiveSpec as PoseObjective,
)
from add.scene.spec.objective import (
    PriorObjectiveSpec as PriorObjective,
)
from add.scene.spec.objective import (
    ProximityObjectiveSpec as ProximityObjective,
)
from add.scene.spec.objective import (
    SmoothnessObjectiveSpec as SmoothnessObjective,
)
from add.scene.spec.objective import (
    TrackObjectiveSpec as TrackObjective,
)
from add.scene.spec.rigid import (
    BoxGeometrySpec as BoxGeometry,
)
from add.scene.spec.rigid import (
    CapsuleGeometrySpec as CapsuleGeometry,
)
from add.scene.spec.rigid import (
    CollisionSpec as Collision,
)
from add.scene.spec.rigid import (
    CylinderGeometrySpec as CylinderGeometry,
)
from add.scene.spec.rigid import (
    FileGeometrySpec as FileGeometry,
)
from add.scene.spec.rigid import (
    KinematicBodySpec as KinematicBody,
)
from add.scene.spec.rigid import (
    ParticleBodySpec as MassSpringBody,
)
from add.scene.spec.rigid import (
    PointsMeshSpec as PointsMesh,
)
from add.scene.spec.rigid import (
    RigidBodySpec as RigidBody,
)
from add.scene.spec.rigid import (
    SheetMeshSpec as SheetMesh,
)
from add.scene.spec.rigid import (
    SphereGeometrySpec as SphereGeometry,
)
from add.scene.spec.scene import (
    CheckSpec as GradientCheckWindow,
)
from add.scene.spec.scene import (
    ExpectationSpec as Expectation,
)
from add.scene.spec.scene import (
    NewtonSpec as NewtonSettings,
)
from add.scene.spec.scene import (
    OutputSpec as OutputSettings,
)
from add.scene.spec.scene import (
    TimeSpec as TimeStepping,
)
from add.scene.spec.world import (
    BoxObstacleSpec as BoxObstacle,
)
from add.scene.spec.world import (
    CapsuleSpec as CapsuleObstacle,
)
from add.scene.spec.world import (
    ConstantSignalSpec as ConstantSignal,
)
from add.scene.spec.world import (
    ContactPairSpec as ContactPair,
)
from add.scene.spec.world import (
    ContactSpec as ContactSettings,
)
from add.scene.spec.world import (
    ControlSignalSpec as ControlSignal,
)
from add.scene.spec.world import (
    CylinderSpec as CylinderObstacle,
)
from add.scene.spec.world import (
    PlaneSpec as PlaneObstacle,
)
from add.scene.spec.world import (
    SineSignalSpec as SineSignal,
)
from add.scene.spec.world import (
    SphereSpec as SphereObstacle,
)
from add.scene.spec.world import (
    SplineSignalSpec as SplineSignal,
)
from add.scene.spec.world import (
    TableSignalSpec as TableSignal,
)

__all__ = [
    "AllSelector",
    "AngleSource",
    "Attachment",
    "BallJoint",
    "BallRegion",
    "BodyContact",
    "BoxGeometry",
    "BoxMesh",
    "BoxObstacle",
    "BoxRegion",
    "BoxSelector",
    "Cable",
    "CapsuleGeometry",
    "CapsuleObstacle",
    "CenterMarker",
    "Collision",
    "ConstantSignal",
    "ContactPair",
    "ContactSettings",
    "ControlSignal",
    "CylinderGeometry",
    "CylinderMesh",
    "CylinderObstacle",
    "DirectionMarker",
    "End",
    "Expectation",
    "ExperimentRun",
    "FileGeometry",
    "FileMesh",
    "FitParameter",
    "FixedJoint",
    "Force",
    "GradientCheckWindow",
    "HingeJoint",
    "HingeStart",
    "JointAngle",
    "JointFriction",
    "KinematicBody",
    "Limits",
    "LineObjective",
    "MarkersObjective",
    "Mask",
    "MassSpringBody",
    "Material",
    "MooneyRivlinMaterial",
    "Motor",
    "NewtonSettings",
    "NodalLoad",
    "NodesMarker",
    "NodesSelector",
    "OptimizerPhase",
    "OptimizerSettings",
    "OutputSettings",
    "Pin",
    "PlaneObstacle",
    "PointAnchor",
    "PointMarker",
    "PointMass",
    "PointObjective",
    "PointsMesh",
    "PoseObjective",
    "PoseSource",
    "PriorObjective",
    "ProximityObjective",
    "RecordedMotion",
    "Register",
    "RigidBody",
    "SheetMesh",
    "SignalReference",
    "SineSignal",
    "SliderJoint",
    "SmoothnessObjective",
    "SoftBody",
    "SphereGeometry",
    "SphereMesh",
    "SphereObstacle",
    "SphereSelector",
    "SplineSignal",
    "Spring",
    "SurfaceMarker",
    "SurfaceSelector",
    "TableSignal",
    "TimeStepping",
    "Torque",
    "TorusMesh",
    "TrackObjective",
]
