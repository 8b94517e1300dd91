"""The objects of a scene under the names by which Python makes them: `add.SoftBody(mesh=add.SphereMesh(...))`.

Whatever has no underscore is such a name, which type checkers, completion and `add` itself read here.
"""

from add.scene.spec import (
    actuation as _actuation,
    articulated as _articulated,
    bodies as _bodies,
    common as _common,
    contact as _contact,
    couplings as _couplings,
    markers as _markers,
    material_laws as _material_laws,
    materials as _materials,
    nets as _nets,
    objective as _objective,
    optimizer as _optimizer,
    rigid as _rigid,
    scene as _scene,
    signals as _signals,
)

ArticulatedBody = _articulated.ArticulatedBodySpec
LinkShape = _articulated.LinkShapeSpec
Link = _articulated.LinkSpec
JointMimic = _articulated.MimicSpec
TreeJoint = _articulated.TreeJointSpec

PointAnchor = _bodies.AnchorSpec
BoxMesh = _bodies.BoxMeshSpec
CellDataSelector = _bodies.CellDataSelectorSpec
CylinderMesh = _bodies.CylinderMeshSpec
Embedding = _bodies.EmbeddingSpec
FileMesh = _bodies.FileMeshSpec
NodalLoad = _bodies.LoadSpec
Pin = _bodies.PinSpec
PointMass = _bodies.PointMassSpec
Region = _bodies.RegionSpec
SoftBody = _bodies.SoftBodySpec
SphereMesh = _bodies.SphereMeshSpec
FilledSurface = _bodies.SurfaceMeshSpec
TorusMesh = _bodies.TorusMeshSpec

BaraffWitkinMembrane = _materials.BaraffWitkinMembraneSpec
ClothMaterial = _materials.ClothMaterialSpec
FormulaMembrane = _materials.FormulaMembraneSpec
HingeBending = _materials.HingeBendingSpec
IsotropicMembrane = _materials.IsotropicMembraneSpec
OrthotropicMembrane = _materials.OrthotropicMembraneSpec
PlateBending = _materials.PlateBendingSpec
TableMembrane = _materials.TableMembraneSpec

CloudBox = _markers.CloudBoxSpec
CloudColour = _markers.CloudColourSpec
CloudObjective = _markers.CloudObjectiveSpec
CloudPlane = _markers.CloudPlaneSpec

AllSelector = _common.AllSelectorSpec
BallRegion = _common.BallSpec
BodyContact = _common.BodyContactSpec
BoxSelector = _common.BoxSelectorSpec
BoxRegion = _common.BoxSpec
NodesSelector = _common.NodesSelectorSpec
SignalReference = _common.SignalReferenceSpec
SphereSelector = _common.SphereSelectorSpec
SurfaceSelector = _common.SurfaceSelectorSpec

ContactPair = _contact.ContactPairSpec
ContactSettings = _contact.ContactSpec
MeshContactSettings = _contact.MeshContactSpec
NodeContactSettings = _contact.NodeContactSpec

Air = _couplings.AirSpec
Attachment = _couplings.AttachmentSpec
BallJoint = _couplings.BallSpec
Cable = _couplings.CableSpec
Drag = _couplings.DragSpec
End = _couplings.EndSpec
FixedJoint = _couplings.FixedSpec
Force = _couplings.ForceSpec
FormulaCoupling = _couplings.FormulaCouplingSpec
HardeningSpring = _couplings.HardeningSpringSpec
HingeFormula = _couplings.HingeFormulaSpec
HingeJoint = _couplings.HingeSpec
HingeStart = _couplings.HingeStartSpec
JointFriction = _couplings.JointFrictionSpec
Limits = _couplings.LimitsSpec
Motor = _couplings.MotorSpec
SliderJoint = _couplings.SliderSpec
Spring = _couplings.SpringSpec
Torque = _couplings.TorqueSpec

CellData = _signals.CellDataSpec
ConstantDirection = _signals.ConstantDirectionSpec
EachElement = _signals.EachSpec
ElementFile = _signals.ElementFileSpec
Fibres = _signals.FibresSpec
HelixDirection = _signals.HelixSpec
LaplaceDirection = _signals.LaplaceSpec

AngleSource = _markers.AngleSourceSpec
CenterMarker = _markers.CenterMarkerSpec
DirectionMarker = _markers.DirectionMarkerSpec
ExperimentRun = _markers.ExperimentSpec
JointAngle = _markers.JointAngleSpec
Mask = _markers.MaskSpec
NodesMarker = _markers.NodesMarkerSpec
Placement = _markers.PlacementSpec
PointMarker = _markers.PointMarkerSpec
PoseSource = _markers.PoseSourceSpec
RecordedMotion = _markers.RecordingSpec
Register = _markers.RegisterSpec
SurfaceMarker = _markers.SurfaceMarkerSpec

FoamMaterial = _materials.FoamMaterialSpec
FormulaMaterial = _materials.FormulaMaterialSpec
GentMaterial = _material_laws.GentMaterialSpec
HgoMaterial = _material_laws.HgoMaterialSpec
HolzapfelOgdenMaterial = _material_laws.HolzapfelOgdenMaterialSpec
HyperfoamMaterial = _material_laws.HyperfoamMaterialSpec
Material = _material_laws.MaterialSpec
MooneyRivlinMaterial = _material_laws.MooneyRivlinMaterialSpec
OgdenMaterial = _material_laws.OgdenMaterialSpec
SiliconeMaterial = _materials.SiliconeMaterialSpec
YeohMaterial = _material_laws.YeohMaterialSpec

ClothBody = _nets.ClothBodySpec
LineMesh = _nets.LineMeshSpec
MassSpringBody = _nets.MassSpringBodySpec
PathMesh = _nets.PathMeshSpec
PointsMesh = _nets.PointsMeshSpec
RectangleMesh = _nets.RectangleMeshSpec
RodBody = _nets.RodBodySpec
Seam = _nets.SeamSpec
SheetMesh = _nets.SheetMeshSpec

ContactObjective = _objective.ContactObjectiveSpec
GradientSettings = _objective.GradientSpec
LineObjective = _objective.LineObjectiveSpec
MarkersObjective = _objective.MarkersObjectiveSpec
NearestObjective = _objective.NearestObjectiveSpec
OneStepObjective = _objective.OneStepObjectiveSpec
FitParameter = _objective.ParameterSpec
PointObjective = _objective.PointObjectiveSpec
PoseObjective = _objective.PoseObjectiveSpec
PriorObjective = _objective.PriorObjectiveSpec
ProximityObjective = _objective.ProximityObjectiveSpec
RoughnessObjective = _objective.RoughnessObjectiveSpec
SmoothnessObjective = _objective.SmoothnessObjectiveSpec
TrackObjective = _objective.TrackObjectiveSpec

BoxObstacle = _rigid.BoxObstacleSpec
CapsuleObstacle = _rigid.CapsuleSpec
CylinderObstacle = _rigid.CylinderSpec
MeshObstacle = _rigid.MeshObstacleSpec
PlaneObstacle = _rigid.PlaneSpec
SphereObstacle = _rigid.SphereSpec

OptimizerSettings = _optimizer.OptimizerSpec
OptimizerPhase = _optimizer.PhaseSpec
OptimizerStarts = _optimizer.StartsSpec

BoxGeometry = _rigid.BoxGeometrySpec
CapsuleGeometry = _rigid.CapsuleGeometrySpec
Collision = _rigid.CollisionSpec
CylinderGeometry = _rigid.CylinderGeometrySpec
FileGeometry = _rigid.FileGeometrySpec
KinematicBody = _rigid.KinematicBodySpec
RigidBody = _rigid.RigidBodySpec
SphereGeometry = _rigid.SphereGeometrySpec

GradientCheckWindow = _scene.CheckSpec
Expectation = _scene.ExpectationSpec
NewtonSettings = _scene.NewtonSpec
OutputSettings = _scene.OutputSpec
TimeStepping = _scene.TimeSpec

ConstantSignal = _signals.ConstantSignalSpec
ControlSignal = _signals.ControlSignalSpec
SineSignal = _signals.SineSignalSpec
SplineSignal = _signals.SplineSignalSpec
TableSignal = _signals.TableSignalSpec

JointDrive = _actuation.DriveSpec

UncertaintySettings = _optimizer.UncertaintySpec
