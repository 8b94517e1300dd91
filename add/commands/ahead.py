"""Compilation: all of it at once, the time it takes on the way, and beside a run that is the first of its kind.

There a second process compiles what matrices need. A run asks for its forces first, and for matrices and factors when
these are there. The two share few functions, and processes that need the same one compile it once
(`add.kernels.caching`), so that both are there in little more than half of the time. The second process only compiles:
what it computes is nothing of the run, and it ends with the run, also where that is killed.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, final

import numpy as np
from numba import config
from numba.core.event import Event, Listener, TimingListener, install_listener
from scipy.sparse import csc_array

from add.commands.beside import leave_garbage
from add.commands.parallel.workers import LocalProcesses, Work
from add.compiled.available import available, functions
from add.compiled.holding import ASKED, call_bears, call_rests
from add.compiled.impulse_near import call_cones, call_in_reach, call_touch_rows, call_touches
from add.compiled.impulses import at_hand
from add.compiled.stages import pull_back_stages
from add.compiled.steps import take_steps
from add.contact import BodyContact, MeshContact
from add.contact.body_family import KIND, MESH_KIND, call_near_pairs, functions_of_contact
from add.contact.meshes import functions_of_meshes
from add.equations.family_term import OverFamily
from add.equations.kinematics import Kinematics, Weights
from add.equations.lifted import LiftedDecidingTerm, LiftedTerm
from add.equations.system import System
from add.equations.term import DecidingTerm, Decision
from add.kernels.arena import FORCES, JACOBIAN, signatures
from add.kernels.caching import executable, is_kept
from add.kernels.cone_solve import call_finish, call_polish, call_ruled, call_settle, call_sweeps
from add.kernels.cones import eigenvalues, singular_values
from add.kernels.contact_lines import call_cross, call_crossing_features
from add.kernels.contact_pairs import STICKS
from add.kernels.contact_places import call_roll, call_rolled
from add.kernels.mesh_distance import call_mesh_branch, call_mesh_feature
from add.kernels.ordering import call_rows_by
from add.kernels.shape_grid import call_shapes_near
from add.linalg import DENSE_LIMIT, MultifrontalLU
from add.linalg.pattern import Pattern
from add.scene import Scene, load_scene
from add.scene.build.run_data import ContactTracks, Energies
from add.scene.build.scene import build
from add.simulation.run import Simulation

#: What others call by address, and most runs do not.
_WHEN_CALLED = (
    call_cones, call_finish, call_polish, call_settle, call_ruled, call_sweeps, eigenvalues, singular_values,
    call_in_reach, call_touches, call_touch_rows, call_roll, call_rolled, call_cross,
    call_rows_by, call_shapes_near,
    call_crossing_features, call_mesh_feature, call_mesh_branch, call_near_pairs, call_rests, call_bears,
)  # fmt: skip
#: Matrices of more coordinates take more memory and time than is to be spent beside a run.
MOST_COORDINATES = 5000


def compile_others(simulation: Simulation) -> None:
    """Compile what no other process is at: a run asks for contact first, and would wait.

    These are the families of forces, then factors of matrices without symmetry, which contact has.
    """
    if config.DISABLE_JIT:
        return
    for term in simulation.system.terms:
        inner = term.inner if isinstance(term, LiftedTerm) else term
        if isinstance(inner, OverFamily):
            functions_of_kind = inner.one.family.kind.functions
            for column in (FORCES, JACOBIAN):
                if functions_of_kind[column] is not None:
                    executable(functions_of_kind[column], signatures()[column][0], wait=False)
    factors = simulation.solver(simulation.system.n_unknowns)
    if simulation.system.deciding and isinstance(factors, MultifrontalLU):
        factors.factor(*Pattern.of(csc_array([[2.0, 1.0], [0.0, 1.0]])))
        factors.solve(np.ones(2))


def compile_matrices(path: str) -> None:
    """Compile the contact of a scene, what is kept of a state, and what matrices need.

    Contact comes first: it takes longest, and while the run builds the scene there is nothing else that it leaves. What
    is kept of states comes before solutions, and before dense matrices: by then the run has come to these.
    """
    scene = load_scene(path)
    for function, signature in _of_contact(scene):
        executable(function, signature)
    built = build(scene)
    simulation = built.simulation
    if simulation.system.n > MOST_COORDINATES:
        return
    assembler, theta = simulation.assembler(), simulation.theta
    system, n = assembler.system, assembler.system.n
    q, v = built.model.initial.evaluate(theta)
    kin, mu = Kinematics(q, v, np.zeros(n), 0.0, 0), np.zeros(system.n_multipliers)
    sticks = scene.contact.friction_law == "hybrid"
    if sticks:
        _stick(system, kin, theta)

    def keep() -> None:
        ContactTracks(system).record(built.model.lift.kinematics(kin, theta), theta, None)
        Energies(built, theta).at(kin)

    dense = system.n_unknowns <= DENSE_LIMIT
    if dense:  # matrices are forces' derivatives alone, and the run has come to them
        keep()
    branch = system.on_branch(tuple([_decided(term, kin, theta, sticks) for term in system.deciding]))
    c = 1.0 / simulation.stepper.dt
    mu, weights = np.zeros(branch.n_rows), Weights(1.0, c, c * c, 1.0)  # multipliers of those that stick, too
    pattern, data = assembler.assemble(kin, mu, theta, weights, branch)
    # Steps in contact have no symmetric matrices, and come to them last.
    assembler.factorization.factor(pattern, data * np.linspace(1.0, 1.01, data.size))
    factors = assembler.factor(kin, mu, theta, weights, branch)
    if not dense:
        keep()
    factors.solve(np.zeros(system.partition.free.size + mu.size))


def _of_contact(scene: Scene) -> list[tuple[Any, tuple[Any, ...]]]:
    """Return the compiled functions that take longest, with the types of their arguments."""
    if scene.contact.friction_law in ("exact", "impulse"):
        return [one.callee[:2] for one in (call_cones, call_polish, call_finish, eigenvalues)]
    given, of_contact = signatures()[JACOBIAN][0], []
    for meets, functions_of_force, kind in (
        (_meshes_meet(scene), functions_of_meshes, MESH_KIND),
        (bool(scene.obstacles), functions_of_contact, KIND),
    ):
        if meets:
            of_contact += [*functions_of_force(), (kind.functions[JACOBIAN], given)]
    return of_contact


def _meshes_meet(scene: Scene) -> bool:
    """Return whether surfaces of a scene meet each other, as its file says before anything is built."""
    deformable = [body for body in scene.bodies.values() if body.type in ("soft", "cloth")]
    themselves = (body.contact is not None and body.contact.meets_itself for body in scene.bodies.values())
    return len(deformable) > 1 or any(themselves) or any(row.by_meshes for row in scene.contact.pairs)


def _stick(system: System, kin: Kinematics, theta: np.ndarray) -> None:
    """Compile the equations of points that stick."""
    for term in system.deciding:
        if isinstance(term, BodyContact) and (constraint := term.stick_constraint(np.array([[0, 0, STICKS]]))):
            constraint.limits(kin, theta)


def _decided(term: DecidingTerm, kin: Kinematics, theta: np.ndarray, sticks: bool) -> Decision:
    """Return a decision with a row that sticks or does nothing: detection is what the run itself compiles first."""
    inner = term.inner if isinstance(term, LiftedDecidingTerm) else term
    if isinstance(inner, BodyContact | MeshContact):
        return np.array([[0, 0, STICKS if sticks and isinstance(inner, BodyContact) else 0]])
    return term.decide(kin, theta)


def _end_with(parent: int) -> None:
    """End this process when its parent is gone."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(0)


# --- Compilation: all of it at once, and the time it takes on the way -------------------------------------------------


@final
class Compilation(Work[int, float]):
    """Functions of `of_all_runs` by number."""

    def prepare(self) -> Callable[[int], float]:
        """Return what compiles one, keeps it on disk and says how many processor seconds that took."""

        def compile_function(number: int) -> float:
            function, signature = of_all_runs()[number]
            began = time.process_time()
            executable(function, signature)
            return time.process_time() - began

        return compile_function


@cache
def of_all_runs() -> tuple[tuple[Any, tuple[Any, ...]], ...]:
    """Return what `warm` compiles, with the types of arguments, those first that take longest.

    Compiled steps of all scenes, explicit ones, and contact where it is evaluated term by term.
    """
    contact = (
        *functions_of_meshes(),
        *functions_of_contact(),
        *(one.callee[:2] for one in _WHEN_CALLED),
    )
    longest = pull_back_stages, take_steps, *(kind.functions[FORCES] for kind in (MESH_KIND, KIND))
    every = [*functions(explicit=True), *contact, *ASKED]
    return tuple(sorted(every, key=lambda call: longest.index(call[0]) if call[0] in longest else len(longest)))


def warmed() -> bool:
    """Return whether all of that is kept on disk."""
    return all(is_kept(*call) for call in of_all_runs())


def warm(processes: int, progress: Callable[[int, int], None] = lambda done, total: None) -> dict[str, float]:
    """Compile the steps in so many processes, which takes minutes, and keep them on disk.

    Parameters
    ----------
    processes : number of them
    progress : called after each function with how many are done and how many there are

    Returns
    -------
    Processor seconds by function, in the order in which they were finished; what several of them call counts for the
    one that came first.
    """
    names, seconds = [_name(function) for function, _ in of_all_runs()], {}
    with LocalProcesses(processes).session(Compilation()) as session:
        for number, spent in session.spread(range(len(names))):
            seconds[names[number]] = spent
            progress(len(seconds), len(names))
    available.cache_clear()
    at_hand.cache_clear()
    return seconds


def _name(function: Any) -> str:
    """Return a function's name with that of its file."""
    file, name = (text.rpartition(".")[2] for text in (function.py_func.__module__, function.py_func.__qualname__))
    return f"{file}.{name.lstrip('_')}"


@contextmanager
def first_compilation(say: Callable[[], None]) -> Iterator[None]:
    """Call ``say`` once, before the first kernel within is compiled; not for one that comes from numba's cache."""
    with install_listener("numba:compile", _First(say)):
        yield


@contextmanager
def kernel_clock() -> Iterator[Callable[[], float]]:
    """Yield the wall time that numba has needed within for compiling kernels and loading them from its cache [s].

    Both are done under its compiler lock; a kernel that calls others brings them along, and is counted once.
    """
    clock = TimingListener()
    with install_listener("numba:compiler_lock", clock):
        yield lambda: clock.duration if clock.done else 0.0


@final
class _First(Listener):
    def __init__(self, say: Callable[[], None]) -> None:
        self._say: Callable[[], None] | None = say

    def on_start(self, event: Event) -> None:
        if self._say is not None:
            say, self._say = self._say, None
            say()

    def on_end(self, event: Event) -> None:
        pass


if __name__ == "__main__":
    leave_garbage()
    threading.Thread(target=_end_with, args=(int(sys.argv[2]),), daemon=True).start()
    compile_matrices(sys.argv[1])
