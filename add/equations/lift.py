"""The lift X = Phi(q; theta): from the coordinates of a system to the places and rotation vectors that forces act on.

Forces, contacts, joints, markers and pictures are written over rows of X: nodes, and centre and rotation vector of
rigid bodies. For bodies whose coordinates are these rows X is q itself, and no lift is made. A body with coordinates of
its own (joint angles, a yaw) has rows of X as well, given by an `Embedding`. With P = dPhi/dq, V = P v and
Q = d(P v)/dq, a term with residual r_X(X, V) on such rows has

    r     = P^T r_X
    dr/dq = P^T (dr_X/dX P + dr_X/dV Q) + sum_i r_X,i d2Phi_i/dq2,      dr/dv = P^T dr_X/dV P

and its cotangents are those of r_X at P lambda. Where Phi depends on theta (lengths of links), those of X and V at
K^T P lambda and C^T P lambda, and of P lambda at r_X, are added (K = dr_X/dX, C = dr_X/dV). Rows without an embedding
are q itself: P is the identity there, and terms may also depend on their accelerations. Inertia of a body with an
embedding is a term in its own coordinates.

Rows of X may be *carried*, too: single ones, anywhere in X, that follow from coordinates which are those of another
body, nodes of tissue fixed to a link. They are no coordinates then, and their inertia is that body's.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import final

import numpy as np

from add.equations.kinematics import Kinematics
from add.equations.layout import DofLayout
from add.typing import AnyArray, BoolArray, FloatArray, IntArray


class Embedding(ABC):
    """The rows of X of one body as functions of its coordinates."""

    @property
    @abstractmethod
    def n_coordinates(self) -> int:
        """Number of coordinates n."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of entries m of X, three a node or six a rigid body."""

    @abstractmethod
    def place(self, q: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Phi (m,) and P (m, n)."""

    def motion(self, q: FloatArray, v: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Phi and P v (m,)."""
        x, p = self.place(q, theta)
        return x, p @ v

    @abstractmethod
    def rates(self, q: FloatArray, v: FloatArray, theta: FloatArray) -> FloatArray:
        """Return Q = d(P v)/dq (m, n)."""

    @abstractmethod
    def curvature(self, q: FloatArray, theta: FloatArray, force: FloatArray) -> FloatArray:
        """Return sum_i force_i d2Phi_i/dq2 (n, n), symmetric."""

    @property
    def structure(self) -> BoolArray:
        """Entries (m, n) of P and Q that may be other than zero."""
        return np.ones((self.n_rows, self.n_coordinates), dtype=bool)

    @property
    def parameters(self) -> IntArray:
        """Indices (k,) of the numbers of theta that Phi depends on."""
        return np.zeros(0, dtype=np.int64)

    def by_parameters(self, q: FloatArray, u: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return dPhi/dtheta and d(P u)/dtheta (m, k) by these numbers."""
        return np.zeros((self.n_rows, 0)), np.zeros((self.n_rows, 0))

    def place_over(self, q: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Phi (k, m) and P (k, m, n) at k places q (k, n)."""
        placed = [self.place(one, theta) for one in q]
        return np.stack([x for x, _ in placed]), np.stack([p for _, p in placed])

    def rates_over(self, q: FloatArray, v: FloatArray, theta: FloatArray) -> FloatArray:
        """Return Q (k, m, n) at k states (k, n)."""
        return np.stack([self.rates(*one, theta) for one in zip(q, v, strict=True)])

    def by_parameters_over(self, q: FloatArray, u: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return dPhi/dtheta and d(P u)/dtheta (k, m, n_p) at k places and vectors (k, n)."""
        moved = [self.by_parameters(*one, theta) for one in zip(q, u, strict=True)]
        return np.stack([x for x, _ in moved]), np.stack([rate for _, rate in moved])


@final
@dataclass(frozen=True)
class LiftedState:
    """A state of motion on the rows of X, and the derivatives of the lift there.

    Attributes
    ----------
    kin : Kinematics
        X, V, and the accelerations where X is q; they are zero on embedded rows, where no term may read them.
    p, q : (1 + sum of m n,)
        Entries of P and Q, block after block, row by row; entry 0 is that of rows where X is q: 1 and 0.
    """

    kin: Kinematics
    p: FloatArray
    q: FloatArray


@final
@dataclass(frozen=True)
class Carried:
    """Rows of X that follow from the coordinates of another body.

    Attributes
    ----------
    embedding : Embedding
    first : int
        First of its coordinates in q.
    rows : (m,) in X
    """

    embedding: Embedding
    first: int
    rows: IntArray


@final
@dataclass(frozen=True)
class Lift:
    """All rows of X: those that are q itself, then the rows of each embedding; carried ones lie among the first.

    Attributes
    ----------
    dofs : DofLayout
        Of q; bodies with an embedding come last.
    rows : DofLayout
        Of X.
    embeddings : tuple of Embedding
    carried : tuple of Carried
    same : slice, or (n_same,)
        The rows of X that are q[:n_same].
    """

    dofs: DofLayout
    rows: DofLayout
    embeddings: tuple[Embedding, ...] = ()
    carried: tuple[Carried, ...] = ()
    n_same: int = field(init=False)
    same: slice | IntArray = field(init=False)
    #: The last state that was lifted: all terms ask for the same one.
    _last: list[tuple[tuple[object, ...], bool, LiftedState]] = field(
        default_factory=list, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        n_own, n_rows = (sum(getattr(e, name) for e in self.embeddings) for name in ("n_coordinates", "n_rows"))
        kept = np.ones(self.rows.n - n_rows, dtype=bool)
        for item in self.carried:
            kept[item.rows] = False
        if self.dofs.n - n_own != kept.sum():
            raise ValueError(f"{self.dofs.n} coordinates, {n_own} embedded; {kept.sum()} of {self.rows.n} rows left")
        object.__setattr__(self, "n_same", self.dofs.n - n_own)
        object.__setattr__(self, "same", np.flatnonzero(kept) if self.carried else slice(0, self.n_same))

    @property
    def is_identity(self) -> bool:
        """Whether X is q."""
        return not self.embeddings and not self.carried

    @cached_property
    def blocks(self) -> list[tuple[Embedding, slice, slice | IntArray, slice]]:
        """(embedding, coordinates, rows, entries of P) of every embedded body, and of what is carried."""
        out: list[tuple[Embedding, slice, slice | IntArray, slice]] = []
        q, x, p = self.n_same, self.rows.n - sum(e.n_rows for e in self.embeddings), 1
        for e in self.embeddings:
            n, m = e.n_coordinates, e.n_rows
            out.append((e, slice(q, q + n), slice(x, x + m), slice(p, p + m * n)))
            q, x, p = q + n, x + m, p + m * n
        for item in self.carried:
            n, size = item.embedding.n_coordinates, item.rows.size * item.embedding.n_coordinates
            out.append((item.embedding, slice(item.first, item.first + n), item.rows, slice(p, p + size)))
            p += size
        return out

    def _numbers(self, rows: slice | IntArray) -> IntArray:
        """Return rows of X by number."""
        return np.arange(self.rows.n)[rows]

    @cached_property
    def entries(self) -> tuple[IntArray, IntArray, IntArray]:
        """Entries of P that may not be zero, by rows of X, compressed.

        First entry of each row (n_rows + 1,), coordinate, and number among `LiftedState.p`.
        """
        same = np.arange(self.n_same, dtype=np.int64)
        row, coordinate, number = [self._numbers(self.same)], [same], [np.zeros_like(same)]
        for e, q, dofs, p in self.blocks:
            rows, columns = np.nonzero(e.structure)
            row.append(self._numbers(dofs)[rows])
            coordinate.append((q.start + columns).astype(np.int64))
            number.append((p.start + rows * e.n_coordinates + columns).astype(np.int64))
        rows = np.concatenate(row)
        order = np.argsort(rows, kind="stable")
        first = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=self.rows.n))]).astype(np.int64)
        return first, np.concatenate(coordinate)[order], np.concatenate(number)[order]

    @cached_property
    def places(self) -> tuple[IntArray, IntArray]:
        """Of each row of X (n_x,) the coordinate that it is, and its number among those that are none; -1 for none."""
        coordinate, number = np.full((2, self.rows.n), -1, dtype=np.int64)
        coordinate[self.same] = np.arange(self.n_same)
        others = np.concatenate([np.zeros(0, dtype=np.int64), *(self._numbers(rows) for _, _, rows, _ in self.blocks)])
        number[others] = np.arange(others.size)
        return coordinate, number

    @cached_property
    def own_columns(self) -> IntArray:
        """Coordinates (n_c,) that rows follow from which are no coordinates."""
        return np.unique(np.concatenate([np.arange(q.start, q.stop) for _, q, _, _ in self.blocks]))

    def own_matrix(self, blocks: Iterable[AnyArray], dtype: type = float) -> AnyArray:
        """Return blocks (m, n), one of each of `blocks`, as one matrix of the rows that are no coordinates (., n_c)."""
        out: AnyArray = np.zeros((self.rows.n - self.n_same, self.own_columns.size), dtype=dtype)
        first = 0
        for (_, q, _, _), block in zip(self.blocks, blocks, strict=True):
            at = int(np.searchsorted(self.own_columns, q.start))
            out[first : first + len(block), at : at + block.shape[1]] = block
            first += len(block)
        return out

    @cached_property
    def own_structure(self) -> BoolArray:
        """Entries of P that may not be zero, as in `own_matrix`."""
        return self.own_matrix((e.structure for e, _, _, _ in self.blocks), bool)

    def own_entries(self, entries: FloatArray) -> FloatArray:
        """Return P or Q as in `own_matrix`; ``entries`` as in `LiftedState`."""
        return self.own_matrix(entries[part].reshape(e.n_rows, -1) for e, _, _, part in self.blocks)

    def kinematics(self, kin: Kinematics, theta: FloatArray) -> Kinematics:
        """Return the state of motion on the rows of X; ``kin`` itself where X is q."""
        if self.is_identity:
            return kin
        x, v, a = self._rows(kin)
        for e, dofs, rows, _ in self.blocks:
            x[rows], v[rows] = e.motion(kin.q[dofs], kin.v[dofs], theta)
        return Kinematics(x, v, a, kin.t, kin.step)

    def velocities(self, q: FloatArray, v: FloatArray, theta: FloatArray) -> FloatArray:
        """Return V (k, n_x) of k states (k, n)."""
        if self.is_identity:
            return v
        out = np.empty((len(v), self.rows.n))
        out[:, self.same] = v[:, : self.n_same]
        for e, dofs, rows, _ in self.blocks:
            out[:, rows] = (e.place_over(q[:, dofs], theta)[1] @ v[:, dofs, None])[..., 0]
        return out

    def _rows(self, kin: Kinematics) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return arrays of X, V and the accelerations: filled where X is q, which has no others."""
        x, v, a = np.empty(self.rows.n), np.empty(self.rows.n), np.zeros(self.rows.n)
        for out, given in ((x, kin.q), (v, kin.v), (a, kin.a)):
            out[self.same] = given[: self.n_same]
        return x, v, a

    def at(self, kin: Kinematics, theta: FloatArray, rates: bool = True) -> LiftedState:
        """Return the lifted state; without ``rates`` Q may be left zero."""
        content = kin.content(theta)
        for kept, with_rates, state in self._last:
            if kept == content and (with_rates or not rates):
                return state
        x, v, a = self._rows(kin)
        size = self.blocks[-1][3].stop if self.blocks else 1
        p, q = np.ones(size), np.zeros(size)
        for e, dofs, rows, entries in self.blocks:
            x[rows], block = e.place(kin.q[dofs], theta)
            v[rows] = block @ kin.v[dofs]
            p[entries] = block.ravel()
            if rates:
                q[entries] = e.rates(kin.q[dofs], kin.v[dofs], theta).ravel()
        state = LiftedState(Kinematics(x, v, a, kin.t, kin.step), p, q)
        self._last[:] = [(content, rates, state)]
        return state

    def push(self, at: LiftedState, vector: FloatArray, by: FloatArray | None = None) -> FloatArray:
        """Return P times vectors (n_q, ...), as (n_x, ...); ``by`` the entries of another matrix of that pattern."""
        out = np.empty((self.rows.n, *vector.shape[1:]))
        out[self.same] = vector[: self.n_same] if by is None else 0.0
        for e, dofs, rows, entries in self.blocks:
            out[rows] = (at.p if by is None else by)[entries].reshape(e.n_rows, -1) @ vector[dofs]
        return out

    def pull(self, at: LiftedState, force: FloatArray, out: FloatArray, by: FloatArray | None = None) -> None:
        """Add P^T times vectors (n_x, ...) to ``out`` (n_q, ...); ``by`` as in `push`."""
        if by is None:
            out[: self.n_same] += force[self.same]
        for e, dofs, rows, entries in self.blocks:
            out[dofs] += (at.p if by is None else by)[entries].reshape(e.n_rows, -1).T @ force[rows]

    @cached_property
    def has_parameters(self) -> bool:
        """Whether Phi depends on theta."""
        return any(e.parameters.size for e, *_ in self.blocks)

    def parameter_vjp(
        self, kin: Kinematics, theta: FloatArray, u: FloatArray, x_bar: FloatArray, u_bar: FloatArray, out: FloatArray
    ) -> None:
        """Add x_bar^T dPhi/dtheta + u_bar^T d(P u)/dtheta to ``out`` (n_theta,)."""
        for e, dofs, rows, _ in self.blocks:
            if e.parameters.size:
                by_place, by_rate = e.by_parameters(kin.q[dofs], u[dofs], theta)
                np.add.at(out, e.parameters, x_bar[rows] @ by_place + u_bar[rows] @ by_rate)

    def parameter_jvp(
        self, kin: Kinematics, theta: FloatArray, u: FloatArray, theta_dot: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the tangents dPhi/dtheta theta_dot and d(P u)/dtheta theta_dot, (n_x, ...) each, of (n_theta, ...)."""
        place, rate = np.zeros((2, self.rows.n, *theta_dot.shape[1:]))
        for e, dofs, rows, _ in self.blocks:
            if e.parameters.size:
                by_place, by_rate = e.by_parameters(kin.q[dofs], u[dofs], theta)
                along = theta_dot[e.parameters]
                place[rows], rate[rows] = by_place @ along, by_rate @ along
        return place, rate

    def pull_parameter_jvp(
        self, kin: Kinematics, theta: FloatArray, theta_dot: FloatArray, force: FloatArray, out: FloatArray
    ) -> None:
        """Add (dP/dtheta theta_dot)^T force to ``out`` (n_q,)."""
        for e, dofs, rows, _ in self.blocks:
            if e.parameters.size and theta_dot[e.parameters].any():
                for k, unit in enumerate(np.eye(e.n_coordinates)):
                    by_rate = e.by_parameters(kin.q[dofs], unit, theta)[1]
                    out[dofs.start + k] += force[rows] @ by_rate @ theta_dot[e.parameters]

    def bend(self, kin: Kinematics, theta: FloatArray, force: FloatArray, along: FloatArray, out: FloatArray) -> None:
        """Add sum_i force_i d2Phi_i/dq2 times vectors (n_q, ...) to ``out`` (n_q, ...); ``force`` (n_x,)."""
        for e, dofs, rows, _ in self.blocks:
            out[dofs] += e.curvature(kin.q[dofs], theta, force[rows]) @ along[dofs]

    def moved_by(self, is_free: BoolArray) -> BoolArray:
        """Return which rows of X (n_x,) a coordinate moves for which ``is_free`` (n_q,)."""
        first, coordinate, _ = self.entries
        row = np.repeat(np.arange(self.rows.n), np.diff(first))
        return np.bincount(row, is_free[coordinate], minlength=self.rows.n) > 0.0

    def bodies_of(self, rows: IntArray) -> IntArray:
        """Return the coordinates (k, .) of q that move with some rows of X (k, m), those of whole embedded bodies.

        -1 stands for none, as in ``rows``.
        """
        out = [np.where(rows >= 0, self.places[0][rows], -1)]
        for _, dofs, x, _ in self.blocks:
            inside = np.isin(rows, self._numbers(x)).any(axis=1)
            part = np.full((rows.shape[0], dofs.stop - dofs.start), -1, dtype=np.int64)
            part[inside] = np.arange(dofs.start, dofs.stop)
            out.append(part)
        return np.concatenate(out, axis=1)

    def curvature_pattern(self) -> tuple[IntArray, IntArray]:
        """Return (rows, cols) of the second derivatives of all embeddings, in q."""
        pairs = [np.meshgrid(*2 * [np.arange(q.start, q.stop)], indexing="ij") for _, q, _, _ in self.blocks]
        return tuple(np.concatenate([pair[k].ravel() for pair in pairs]).astype(np.int64) for k in range(2))  # type: ignore[return-value]

    def curvature(self, kin: Kinematics, theta: FloatArray, force: FloatArray) -> FloatArray:
        """Return sum_i force_i d2Phi_i/dq2 at the entries of `curvature_pattern`."""
        return np.concatenate(
            [
                e.curvature(kin.q[dofs], theta, f).ravel() if (f := force[rows]).any() else np.zeros(e.n_coordinates**2)
                for e, dofs, rows, _ in self.blocks
            ]
        )
