"""Contact of the scene format."""

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field

from add.contact import CONSTANT_FRICTION, FrictionCurve
from add.scene.spec import kinds
from add.scene.spec.common import HARD, Facts, Role, Spec
from add.scene.spec.friction import CURVES, FrictionCurveSpec, NormalLawSpec, _FurtherFriction
from add.scene.spec.kinds import problem


class ContactPairSpec(_FurtherFriction):
    """The contact between two bodies, obstacles or classes of bodies; null takes the value of `contact`.

    Later rows win. `body` with `obstacle` is for points of one body on the shape of the other alone.

    Attributes
    ----------
    between : names of bodies, obstacles or classes of bodies (`bodies.*.contact.class`), in any order
    obstacle : name of an obstacle or a class, or of another rigid or kinematic body whose shape is met
    restitution : ratio of the speeds after and before a head-on impact [-]; sets the damping, from the masses of both
        rigid bodies, `touching` and the stiffness per point
    thickness : thickness of the layer around shapes [m]; of all laws but `penalty`
    by_meshes : true: two bodies meet by meshes, also where points could meet a shape; balls by radius
    """

    between: tuple[kinds.SideName, kinds.SideName] | None = None
    body: kinds.SideName | None = Field(None, description="name of a body or a class, whose points are meant")
    obstacle: kinds.SideName | None = None
    stiffness: kinds.Positive | None = Field(None, description="k_n [N/m], or [N/m^3] per area")
    friction: kinds.NonNegative | None = Field(None, description="Coulomb's coefficient [-]")
    damping: kinds.NonNegative | None = Field(None, description="k_d [N s/m], or [N s/m^3] per area")
    restitution: Annotated[kinds.Number, Field(gt=0, le=1)] | None = None
    touching: kinds.Count | None = Field(None, description="points that touch at once in that impact; null = 1")
    stick_stiffness: kinds.Positive | None = Field(None, description="k_t [N s/m], or [N s/m^3] per area")
    thickness: kinds.Positive | None = None
    by_meshes: kinds.Flag = False
    enabled: kinds.Flag = Field(True, description="false: they pass through each other")

    def unread(self, facts: Facts, path: str) -> dict[str, str]:
        out = {}
        if facts.without_penalties:
            out = dict.fromkeys(("stiffness", "damping", "stick_stiffness", "touching"), _no_penalties(facts))
        if self.restitution is None:
            out["touching"] = "it is of a 'restitution', which this pair has not"
        if facts.friction_law == "none":
            out |= dict.fromkeys(("friction", "stick_stiffness"), _NO_FRICTION)
        if not self.enabled:
            out |= dict.fromkeys((*_OF_PAIRS, "touching"), "the pair is switched off")
        return dict.fromkeys(_idle(facts, path, _OF_PAIRS), _IDLE) | out

    @property
    def sides(self) -> tuple[str, str]:
        """The two names."""
        if self.between is not None:
            return self.between
        assert self.body is not None and self.obstacle is not None
        return self.body, self.obstacle

    def model_post_init(self, context: Any) -> None:
        given = [key for key in ("between", "body", "obstacle") if getattr(self, key) is not None]
        if given not in (["between"], ["body", "obstacle"]):
            raise problem(
                "a pair has two sides", found=" and ".join(f"'{key}'" for key in given) or "none of them",
                expected="'between', or 'body' and 'obstacle'",
            )  # fmt: skip
        if self.restitution is not None and self.damping is not None:
            raise problem("the restitution sets the damping: give one of them", key="restitution",
                          found=f"{self.restitution:g}")  # fmt: skip


_NO_FRICTION, _NO_DAMPING = "there is no friction", "there is no damping"
_IDLE = "no two things that may touch take it"
_OF_ALL = ("stiffness", "damping", "stick_stiffness", "friction", "thickness", *_FurtherFriction.model_fields)
_OF_PAIRS = (*_OF_ALL, "restitution")


def _idle(facts: Facts, path: str, keys: tuple[str, ...]) -> list[str]:
    return [key for key in keys if facts.idle(f"{path}.{key}")]


def _no_penalties(facts: Facts) -> str:
    return f"contact by the friction law '{facts.friction_law}' has no penalties"


class NodeContactSpec(Spec, numbers=Role.PROPERTY):
    """Contact of the nodes of soft and mass-spring bodies with shapes, where it differs from that of bodies' points.

    Attributes
    ----------
    stiffness : normal stiffness k_n [N/m], or [N/m^3] per area; null = `contact.stiffness`
    damping : normal damping k_d [N s/m], or [N s/m^3] per area; null = `contact.damping`
    stick_stiffness : k_t [N s/m], or [N s/m^3] per area; null = `contact.stick_stiffness`, or as the stiffness where
        that is null
    """

    stiffness: kinds.Positive | None = None
    damping: kinds.NonNegative | None = None
    stick_stiffness: kinds.Positive | None = None

    def unread(self, facts: Facts, path: str) -> dict[str, str]:
        keys = tuple(type(self).model_fields)
        if facts.without_penalties:
            return dict.fromkeys(keys, _no_penalties(facts))
        idle = _idle(facts, path, keys)
        return dict.fromkeys(idle, _IDLE if facts.nodes_meet else "no body has nodes that meet shapes")


class MeshContactSpec(Spec, numbers=Role.PROPERTY):
    """Contact of meshes with each other: of two bodies of which neither has points that meet shapes of the other.

    Vertices meet faces and edges meet edges where they are nearer than both skins are thick. Friction, and what null
    stands for, is that of `contact`.

    Attributes
    ----------
    thickness : thickness of the skins of bodies that say none [m]; null = half the mesh width, at most 0.04 of the size
        of the body
    stiffness : normal stiffness k_n of two surfaces [N/m^3]; null = `contact.stiffness`, over the mean area of a vertex
        where that counts per node; where that is null, too, from weights, sizes and moduli
    damping : normal damping k_d [N s/m^3]; null as for the stiffness
    onset : depth over which the stiffness sets in [m]; null = `contact.onset`, or 0.3 of the distance at which the
        thinnest skins touch if that is 0
    damping_ramp : depth over which the damping sets in [m]; null = `contact.damping_ramp`, or as the onset
    """

    thickness: kinds.Positive | None = None
    stiffness: kinds.Positive | None = None
    damping: kinds.NonNegative | None = None
    stick_stiffness: kinds.Positive | None = Field(None, description="k_t [N s/m^3]; null as for the stiffness")
    onset: kinds.Positive | None = None
    damping_ramp: kinds.Positive | None = None

    def unread(self, facts: Facts, path: str) -> dict[str, str]:
        if not facts.meshes_meet:
            return dict.fromkeys(type(self).model_fields, "no two bodies meet by their meshes")
        return dict.fromkeys(_idle(facts, path, tuple(type(self).model_fields)), _IDLE)


class ContactSpec(_FurtherFriction):
    """Penalty contact of every body with every obstacle.

    Without a stiffness, stiffness, damping, onset and ramp follow from the weights and sizes of what may touch, once,
    when the scene is built (`add.scene.build.default_contact`); `add check` prints them, and results keep them. They
    are numbers like given ones: no derivative contains that choice. With a stiffness the others are zero.

    Attributes
    ----------
    stiffness : normal stiffness k_n [N/m], or [N/m^3] per area; null = from weights and sizes
    stiffness_per : whether stiffness, damping and stick stiffness count per surface node, or per rest area (then the
        answer does not change with the mesh)
    law : law of the normal force; `penalty`: k_n times the depth, see `onset`; `penalty+wall`: the same in a layer
        around shapes and in the skins of meshes, with a barrier from half their thickness on, so that surfaces never
        touch; `soft-max`: k_n r ln(1 + exp(-g / r)) at the gap g, without a kink, of points and shapes alone;
        `log-barrier`: a barrier in the whole layer; or a formula, `{"energy": "2/5*d**2.5"}`
    friction_curve : what the coefficient of friction follows, by formula; null = nothing but the keys below
    thickness : thickness r of the layer around shapes in which points feel them [m]: of all laws but `penalty` and
        formulas without r, which need it; skins of meshes have their own
    friction_law : `linear`: f_t = -t min(k_t |v_t|, c_f f_n); `tanh`: f_t = -t c_f f_n tanh(k_t |v_t| / (c_f f_n));
        `hybrid`: what sticks under the linear law is held by equations, and does not creep; `exact`: no penalty at all,
        gaps are never negative and Coulomb's law holds exactly at the end of every step; stiffness, damping and stick
        stiffness are not read, impacts of rigid bodies are plastic; `impulse`: no penalty either, contact in velocities
        with Coulomb's cone, restitutions and exact gradients, by bdf1
    friction_cone : `impulse`: the bound of friction; `round`: |f_t| <= c_f f_n; `pyramid`: each of two fixed tangents
        by itself, the boxed problem of many engines: up to sqrt(2) times that
    impact_time : `impulse`: a pair with a restitution bounces when its gap closes, `linear`, so that places and
        gradients do not depend on the phase of the steps; or at the beginning of the `step` that would close it
    stick_stiffness : k_t [N s/m], or [N s/m^3] per area; null = k_n times the step of `stick_stiffness_rule`
    stick_stiffness_rule : the step in k_t = k_n dt: `dt`, or `effective-dt`, the integrator's own (dt for bdf1, 2/3 dt
        for bdf2)
    damping : normal damping k_d [N s/m], or [N s/m^3] per area; null = 0, or as the stiffness where that is null
    damping_ramp : depth over which the damping sets in [m]; 0 = at once; null as for the damping
    onset : depth delta over which the stiffness sets in [m]: f_n = k_n d^2 / (2 delta) for d < delta; null as for the
        damping
    coulomb_normal : normal force in Coulomb's limit: `elastic` part only, or `total` with damping
    adhesive_damping : whether the damping may pull while bodies part, down to where they lose touch; false: the normal
        force is never negative. Eq. 22 of the paper, which then gives `restitution`, holds for true
    between_bodies : whether bodies meet: points of one the shapes that rigid and kinematic bodies carry, others by
        their meshes (`mesh`); bodies that a coupling joins do not, unless it says `collide`
    """

    stiffness: kinds.Positive | None = None
    stiffness_per: Literal["node", "area"] = "node"
    law: NormalLawSpec = "penalty"
    friction_curve: FrictionCurveSpec | None = None
    thickness: kinds.Positive | None = None
    friction_law: Literal["linear", "tanh", "hybrid", "none", "exact", "impulse"] = "linear"
    friction_cone: Literal["round", "pyramid"] = "round"
    impact_time: Literal["step", "linear"] = "linear"
    friction: kinds.NonNegative = Field(0.4, description="Coulomb's coefficient c_f [-]")
    stick_stiffness: kinds.Positive | None = None
    stick_stiffness_rule: Literal["dt", "effective-dt"] = "dt"
    damping: kinds.NonNegative | None = None
    damping_ramp: kinds.NonNegative | None = None
    onset: kinds.NonNegative | None = None
    nodes: NodeContactSpec = Field(
        default_factory=NodeContactSpec, description="nodes of soft and mass-spring bodies on shapes"
    )
    coulomb_normal: Literal["elastic", "total"] = "elastic"
    # Scenes of before say "pulls".
    adhesive_damping: Annotated[kinds.Flag, Field(validation_alias=AliasChoices("adhesive_damping", "pulls"))] = False
    between_bodies: kinds.Flag = True
    mesh: MeshContactSpec = Field(default_factory=MeshContactSpec, description="contact of meshes with each other")
    pairs: tuple[ContactPairSpec, ...] = Field((), description="pairs that differ from the above or are switched off")

    def unread(self, facts: Facts, path: str) -> dict[str, str]:
        if not facts.touching:
            settings = ("friction_curve", "friction_cone", "impact_time", "stick_stiffness_rule", "law", "onset",
                        "damping_ramp", "stiffness_per", "coulomb_normal", "adhesive_damping")  # fmt: skip
            law = () if facts.without_penalties else ("friction_law",)
            return dict.fromkeys((*_OF_ALL, *settings, *law), "nothing can touch anything")
        out = dict.fromkeys(_idle(facts, path, _OF_ALL), _IDLE)
        if self.stick_stiffness is not None:
            out["stick_stiffness_rule"] = "'stick_stiffness' is given"
        if facts.without_penalties:
            keys = ("stiffness", "stiffness_per", "stick_stiffness", "stick_stiffness_rule", "damping", "damping_ramp",
                    "onset", "coulomb_normal", "adhesive_damping")  # fmt: skip
            out |= dict.fromkeys(keys, _no_penalties(facts))
        if facts.friction_law != "impulse":
            out |= dict.fromkeys(("friction_cone", "impact_time"), "it is of the friction law 'impulse'")
        elif not any(row.restitution is not None and row.enabled for row in self.pairs):
            out["impact_time"] = "it is of a 'restitution', which no pair has"
        if facts.friction_law == "none":
            out["friction"] = _NO_FRICTION
        coefficients = ("friction", "static_friction", "faded_friction", "torsional_friction", "rolling_friction")
        if facts.friction_law == "none" or (not self.friction_curve and self._vanish(facts, path, *coefficients)):
            out |= dict.fromkeys(("stick_stiffness", "stick_stiffness_rule", "coulomb_normal"), _NO_FRICTION)
        damped = "damping", "restitution", "nodes.damping", "mesh.damping"
        if not facts.without_penalties and self._vanish(facts, path, *damped):
            out["adhesive_damping"] = _NO_DAMPING
            if self.damping_ramp:
                out["damping_ramp"] = _NO_DAMPING
        return out

    def _vanish(self, facts: Facts, path: str, *keys: str) -> bool:
        """Whether numbers are zero, or not there, here and in all pairs."""
        places = [f"{path}.{key}" for key in keys]
        places += [f"{path}.pairs.{k}.{key}" for k in range(len(self.pairs)) for key in keys]
        return all(facts.vanishes(place) for place in places)

    @property
    def curve(self) -> FrictionCurve:
        """The curve of the coefficient of friction: by formula, or that whose first number is said anywhere."""
        if self.friction_curve is not None:
            return self.friction_curve.curve
        rows = (self, *self.pairs)
        asked = (c for c in CURVES if any(getattr(row, c.numbers[0].name) is not None for row in rows))
        return next(asked, CONSTANT_FRICTION)

    @property
    def has_layer(self) -> bool:
        """Whether points feel shapes before they touch them."""
        return self.law != "penalty" if isinstance(self.law, str) else self.law.law.has_layer

    @property
    def brakes_spin(self) -> bool:
        """Whether torsional or rolling friction is said anywhere."""
        rows = (self, *self.pairs)
        return any(row.torsional_friction is not None or row.rolling_friction is not None for row in rows)

    def model_post_init(self, context: Any) -> None:
        if self.adhesive_damping and self.coulomb_normal == "total":
            raise problem(
                "friction cannot be limited by a force that pulls", key="adhesive_damping",
                found="true, and coulomb_normal 'total'", expected="coulomb_normal 'elastic'",
            )  # fmt: skip
        self._check_law()

    def _check_law(self) -> None:
        """Refuse what the law of the normal force does not read."""
        by_formula = not isinstance(self.law, str)
        law = "a law by formula" if by_formula else f"the law '{self.law}'"
        given = [key for key in ("onset", "damping_ramp") if getattr(self, key) or getattr(self.mesh, key)]
        layers = ["thickness"] if self.thickness is not None else []
        layers += [f"pairs.{k}.thickness" for k, row in enumerate(self.pairs) if row.thickness is not None]
        if not self.has_layer and layers:
            raise problem("this law has no layer around shapes", key=layers[0], found=law,
                          expected="'penalty+wall', 'soft-max', 'log-barrier' or a formula with r")  # fmt: skip
        if self.law == "penalty":
            return
        if self.friction_law in HARD:
            raise problem("hard contact has no law of penalties", key="law", found=f"{law}, and '{self.friction_law}'",
                          expected="'penalty', or another friction_law")  # fmt: skip
        if self.law == "penalty+wall":
            return
        if "onset" in given:
            raise problem("this law sets in by itself", key="onset", found=law, expected="no onset")
        if by_formula and self.stiffness is None:
            raise problem("a law by formula needs its stiffness: none follows from weights and sizes", key="stiffness",
                          found="none", expected="k_n of f_n = k_n dE/dd")  # fmt: skip
        shared = self.law == "soft-max" or (not isinstance(self.law, str) and self.law.law.damping != "")
        if shared and "damping_ramp" in given:
            raise problem("the damping sets in as the force does", key="damping_ramp", found=law, expected="no ramp")
        for k, row in enumerate(self.pairs):
            if row.restitution is not None:
                raise problem("a restitution is of a stiffness that does not change with the depth",
                              key=f"pairs.{k}.restitution", found=law, expected="'damping'")  # fmt: skip
