"""Whether compiled steps are there: kept on disk from an earlier time, so that no run waits for their compilation."""

from functools import cache
from typing import Any

import numpy as np
from numba import config, typeof

from add.compiled import impulses
from add.compiled.equations import Reading, evaluate, push_steps, state_matrices, step_matrices
from add.compiled.impulses import take_impulses
from add.compiled.members import pull_back_each, take_each
from add.compiled.newton import FRESH, Criteria
from add.compiled.pack import PackedSystem, pack
from add.compiled.routines import NONE, callees
from add.compiled.stages import pull_back_stages, take_stages
from add.compiled.steps import Stages, Steps, Tableau, Timing, pull_back_steps, take_steps
from add.compiled.walk import Along, no_choices
from add.contact import body_family
from add.equations.family import Kind, NotCompiled
from add.equations.system import System
from add.joints import law as joint_law
from add.joints.laws import TERMS
from add.kernels.arena import Signals, empty_arena, empty_instant, signatures
from add.kernels.by_address import Callee
from add.kernels.caching import executable, is_kept
from add.linalg.blas import addresses
from add.materials import MATERIALS, NEWTONIAN, POWER_LAW, Elements, elements as loops
from add.materials.formulas import callees as of_material
from add.materials.relaxation import pull_remembered_stress, push_remembered_stress, remembered_stress
from add.materials.strain_loops import callees as of_strains, strain_energy
from add.materials.strains import BENDINGS, MEMBRANES, ROD_BENDING, ROD_STRETCHING
from add.materials.viscosity import callees as of_viscosity
from add.terms import (
    elastic,
    held_friction,
    inertia,
    joint_laws,
    lengths,
    loads,
    multipliers,
    muscle,
    pressure,
    rigid_inertia,
)

#: The kinds of families of this package.
OWN_KINDS: tuple[Kind, ...] = (
    rigid_inertia.KIND, inertia.KIND, elastic.ELASTIC, elastic.VISCOUS, elastic.STRAINED,
    inertia.GRAVITY, loads.KIND, body_family.KIND, body_family.MESH_KIND,
    joint_law.KIND, joint_laws.KIND,
    lengths.LAWS, lengths.DRIVE, lengths.LAWS_OF_PATHS, lengths.DRIVE_OF_PATH, loads.WRENCHES,
    muscle.KIND, muscle.CELLS, pressure.KIND, inertia.WATER,
    held_friction.KIND, multipliers.LOOPS, multipliers.COUPLINGS, multipliers.TIED, loads.POINTS, pressure.CHAMBER,
    body_family.HELD,
)  # fmt: skip
_STRAINED = (*MEMBRANES.values(), *BENDINGS.values(), ROD_STRETCHING, ROD_BENDING)


@cache
def available(kinds: tuple[Kind, ...] | None = None, trees: bool | None = None, sparse: bool | None = None) -> bool:
    """Whether compiled steps of systems with these kinds of families can be used at once; see `functions`."""
    if config.DISABLE_JIT:
        return False  # there is no calling of LAPACK by address
    return all(is_kept(*call) for call in functions(kinds, trees, sparse))


def packed_or_reason(system: System, needed: bool) -> PackedSystem | str:
    """Return the arrays of a system's compiled steps, or why there are none; what is ``needed`` is compiled."""
    try:
        packed = pack(system)
    except NotCompiled as reason:
        return str(reason)
    known, others = (tuple(kind for kind in packed.kinds if (kind in OWN_KINDS) == own) for own in (True, False))
    if config.DISABLE_JIT or not (needed or available(known, packed.trees, packed.sparse)):
        return "compiled steps are not kept on disk: run `add warm` once"
    for function, signature in _of_kinds(packed.kinds if needed else others):
        executable(function, signature)  # of a formula or an extension, which `add warm` does not know; kept then
    return packed


def make_available(
    kinds: tuple[Kind, ...] | None = None, trees: bool | None = None, sparse: bool | None = None
) -> None:
    """Compile what `available` asks for and is not kept, one after the other; `add warm` does it on all cores."""
    for function, signature in functions(kinds, trees, sparse):
        executable(function, signature)
    available.cache_clear()
    impulses.at_hand.cache_clear()


def functions(
    kinds: tuple[Kind, ...] | None = None,
    trees: bool | None = None,
    sparse: bool | None = None,
    explicit: bool = False,
) -> list[tuple[Any, tuple[Any, ...]]]:
    """Return all functions with the types of their arguments: each can be compiled without the others.

    Parameters
    ----------
    kinds : of the families; all of this package by default
    trees, sparse : whether the systems have trees, and sparse matrices; None for systems of both sorts
    explicit : those of explicit steps, too, which only runs by them need, and what terms of elements call
    """
    with_trees = (False, True) if trees is None else (trees,)
    # Functions of sparse matrices are the same with trees, whose dense ones have equations of their own.
    sorts = [(False, sparse is not False)] if False in with_trees else []
    if True in with_trees:
        sorts += [(True, one) for one in ((False, True) if sparse is None else (sparse,))]
    of_callees = list(dict.fromkeys((one.function, one.signature) for sort in sorts for one in callees(*sort)))
    implicit, of_stages = _calls()
    calls = (*implicit, *of_stages) if explicit else implicit
    of_calls = [(function, tuple(map(typeof, arguments))) for function, arguments in calls]
    of_laws = _of_laws() if kinds is None else []
    return [*of_callees, *of_calls, *(one[:2] for one in of_laws), *_of_kinds(OWN_KINDS if kinds is None else kinds)]


def _of_laws() -> list[Callee]:
    """Return the functions of the laws that families call by address."""
    return [
        *(one for law in MATERIALS for one in of_material(law)),
        *(one for law in _STRAINED for one in of_strains(law)),
        *(one for law in (NEWTONIAN, POWER_LAW) for one in of_viscosity(law)),
        *(one for term in TERMS for one in joint_law.callees(term.law)),
        joint_laws.MOTION,
        joint_laws.FRICTION,
        joint_laws.LIMIT,
        lengths.PATH_LENGTH,
    ]


def _of_kinds(kinds: tuple[Kind, ...]) -> list[tuple[Any, tuple[Any, ...]]]:
    """Return the functions of kinds of families with the types of their arguments."""
    return [
        (function, signature)
        for kind in dict.fromkeys(kinds)
        for function, (signature, _) in zip(kind.functions, signatures(), strict=True)
        if function is not None
    ]


def _calls() -> tuple[tuple[tuple[Any, tuple[Any, ...]], ...], ...]:
    """Return functions with arguments of the types that callers give them; those of few runs and of terms apart."""
    families, one, two, three = empty_arena(), *(np.zeros((0,) * n) for n in (1, 2, 3))
    rows, ends = np.zeros((0, 3), dtype=np.int64), np.zeros((0, 0), dtype=np.int64)
    signals = Signals(two, np.zeros((0, 0, 3), dtype=np.int64))
    common = (families, NONE, Timing(0.0, 0, one, one, one))
    given = one, no_choices(0), FRESH
    take = (*common, Criteria(0.0, 0.0, 0.0, 2, 1), (two, two), one, signals, one, False, given)
    turned = np.zeros((0, 0), dtype=bool)
    steps = Steps(two, two, two, two, two, turned, ends, one, two, rows, ends)
    back = (*common, steps, (one, one), signals, one, (three, three), one, one)
    firsts, four = np.zeros(0, dtype=np.int64), np.zeros((0,) * 4)
    take_many = (*common, Criteria(0.0, 0.0, 0.0, 2, 1), (firsts, three, three), two, signals, two, given)
    back_many = (*common, steps, (firsts, two, two), signals, two, (four, four), two, two)
    now, counts = empty_instant().signals, np.zeros(0, dtype=np.int64)
    along = Along(counts, counts, one, 0, False)
    matrices = families, NONE, 0.0, (one, one, one), one, now, given[1], along
    of_step = families, NONE, Reading(0.0, 0.0, one, 2), (one, one, one), one, now, given[1], along
    push = (*common, steps, (0, 1), signals, one, along, counts, four)
    equations = families, NONE, (0.0, one, one, one, one, now), True, given[1], 0, (0.0, 0.0, 0.0), one, one
    known, tableau, timing = (addresses(), (counts, counts, counts)), Tableau(two, one, one), common[2]
    take_explicit = (families, known, tableau, timing, (one, one), signals, one, 0.0)
    stages = Stages(tableau, four)
    back_explicit = (families, known, timing, steps, stages, (one, one), signals, one, (three, three), one)
    elements = Elements(np.zeros((0, 0), dtype=np.int64), four, two, counts, counts, counts)
    stencils = elastic.StrainArrays(elements.cells, elements.cells, two, one, counts, elements.cells, counts)
    of_python = (
        (loops.energy, (one, elements, two)), (loops.cauchy_stress, (one, elements, two)),
        (loops.linear_moduli, (counts, two)), (strain_energy, (one, stencils, two)),
        (remembered_stress, (one, elements, two, three)),
        (push_remembered_stress, (one, elements, two, one, two, three)),
        (pull_remembered_stress, (one, elements, two, three, one, two)),
    )  # fmt: skip
    return (
        (take_steps, take), (pull_back_steps, back), (state_matrices, matrices), (step_matrices, of_step),
        (take_each, take_many), (pull_back_each, back_many), (push_steps, push), (evaluate, equations),
    ), (
        (take_stages, take_explicit), (pull_back_stages, back_explicit), (take_impulses, impulses.arguments()),
        *of_python,
    )  # fmt: skip
