"""Starts of trees with loops: the closest pose in which they are closed, and rates that keep them closed.

With c(q; theta) = 0 the rows and G = dc/dq, the start q_g, v_g becomes

    q = argmin |q - q_g|^2 / 2 with c(q) = 0:       q - q_g + G^T lam = 0,   c = 0
    v = argmin |v - v_g|^2 / 2 with G v = 0:        v - v_g + G^T kap = 0,   G v = 0

over the coordinates that are not prescribed; derivatives follow from these equations.
"""

from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from add.equations.kinematics import Kinematics, Weights
from add.equations.term import Constraint
from add.errors import InputError
from add.typing import FloatArray, IntArray

_BY_Q = Weights(1.0, 0.0, 0.0)
_MOST = 100


@final
@dataclass(frozen=True)
class Assembly:
    """The move of a start onto equations without dependent rows.

    Attributes
    ----------
    constraints : functions of q and theta alone
    n : number of coordinates
    held : coordinates that keep their start: they are prescribed
    """

    constraints: tuple[Constraint, ...]
    n: int
    held: IntArray
    _rows: IntArray = field(init=False, repr=False, compare=False)
    _moved: IntArray = field(init=False, repr=False, compare=False)
    _last: list[tuple[bytes, tuple[FloatArray, ...]]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        starts = np.cumsum([0, *(constraint.n_rows for constraint in self.constraints)])
        touched = [np.zeros(0, dtype=np.int64)]
        for constraint in self.constraints:
            touched += [part[part < self.n] for part in constraint.pattern(self.n)]
        object.__setattr__(self, "_rows", starts)
        object.__setattr__(self, "_moved", np.setdiff1d(np.concatenate(touched), self.held))
        object.__setattr__(self, "_last", [])

    # --- the rows and their derivatives -----------------------------------------------------------------------------

    def _kin(self, q: FloatArray) -> Kinematics:
        none = np.zeros(self.n)
        return Kinematics(q, none, none, 0.0, 0)

    def _c(self, q: FloatArray, theta: FloatArray) -> FloatArray:
        out, kin = np.zeros(self._rows[-1]), self._kin(q)
        for k, constraint in enumerate(self.constraints):
            rows = out[self._rows[k] : self._rows[k + 1]]
            constraint.residual(kin, np.zeros(rows.size), theta, np.zeros(self.n), rows)
        return out

    def _derivatives(self, q: FloatArray, mu: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return G (m, n) and d(G^T mu)/dq (n, n) by the coordinates that the rows have."""
        n, m, kin = self.n, int(self._rows[-1]), self._kin(q)
        G, H = np.zeros((m, n)), np.zeros((n, n))
        for k, constraint in enumerate(self.constraints):
            first = int(self._rows[k])
            rows, cols = constraint.pattern(n + first)
            values = np.zeros(rows.size)
            constraint.jacobian(kin, mu[first : self._rows[k + 1]], theta, _BY_Q, values, np.arange(rows.size))
            of_loops = rows >= n
            np.add.at(G, (rows[of_loops] - n, cols[of_loops]), values[of_loops])
            bent = ~of_loops & (cols < n)
            np.add.at(H, (rows[bent], cols[bent]), values[bent])
        return G, H

    def _jvp(
        self, q: FloatArray, mu: FloatArray, theta: FloatArray, theta_dot: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the tangents of G^T mu and of c along theta_dot."""
        out, rows = np.zeros(self.n), np.zeros(self._rows[-1])
        for k, constraint in enumerate(self.constraints):
            part = slice(self._rows[k], self._rows[k + 1])
            constraint.parameter_jvp(self._kin(q), mu[part], theta, theta_dot, out, rows[part])
        return out, rows

    def _vjp(
        self, q: FloatArray, mu: FloatArray, theta: FloatArray, lam: FloatArray, lam_rows: FloatArray, out: FloatArray
    ) -> None:
        for k, constraint in enumerate(self.constraints):
            part = slice(self._rows[k], self._rows[k + 1])
            constraint.parameter_vjp(self._kin(q), mu[part], theta, lam, lam_rows[part], out)

    def _saddle(self, block: FloatArray, G: FloatArray) -> FloatArray:
        m = G.shape[0]
        return np.block([[block, G[:, self._moved].T], [G[:, self._moved], np.zeros((m, m))]])

    # --- the start --------------------------------------------------------------------------------------------------

    def solve(self, theta: FloatArray, q: FloatArray, v: FloatArray) -> tuple[FloatArray, ...]:
        """Return q, v, lam and kap of the closed start.

        Raises
        ------
        InputError
            If no closed pose is found near the given one.
        """
        key = b"".join(part.tobytes() for part in (theta, q, v))
        for kept, solution in self._last:
            if kept == key:
                return solution
        solution = self._solved(theta, q, v)
        self._last[:] = [(key, solution)]  # another thread may put its own here at once
        return solution

    def closed(self, theta: FloatArray, q_g: FloatArray) -> FloatArray:
        """Return a closed pose near the given one; rows may depend on each other.

        Raises
        ------
        InputError
            If none is found.
        """
        moved, none, q = self._moved, np.zeros(self._rows[-1]), q_g.copy()
        allowed = 1e-13 * (1.0 + float(np.abs(q_g).max(initial=0.0)))
        gap = float(np.abs(self._c(q, theta)).max(initial=0.0))
        for _ in range(_MOST):
            if gap <= allowed:
                break
            step = np.linalg.lstsq(self._derivatives(q, none, theta)[0][:, moved], -self._c(q, theta), rcond=1e-10)[0]
            share, there = 1.0, gap
            while share > 1e-4:
                trial = q.copy()
                trial[moved] += share * step
                there = float(np.abs(self._c(trial, theta)).max())
                if there < gap:
                    break
                share *= 0.5
            if not there < gap:
                break
            q, gap = trial, there
        if not gap <= 1e4 * allowed:
            raise InputError(
                "loops do not close near the start",
                found=f"{gap:.3g} (m, or the cosine of an angle) remain",
                expected="starts of joints, and places of the loops' ends, that let them close",
            )
        return q

    def gap(self, theta: FloatArray, q: FloatArray) -> float:
        """Return by how much a pose leaves the loops open: the largest row [m], [rad], or the cosine of an angle."""
        return float(np.abs(self._c(q, theta)).max(initial=0.0))

    def rows_by_coordinates(self, q: FloatArray, theta: FloatArray) -> FloatArray:
        """Return G (m, n)."""
        return self._derivatives(q, np.zeros(self._rows[-1]), theta)[0]

    def _solved(self, theta: FloatArray, q_g: FloatArray, v_g: FloatArray) -> tuple[FloatArray, ...]:
        moved, lam = self._moved, np.zeros(self._rows[-1])
        q = self.closed(theta, q_g)
        eye = np.eye(moved.size)
        if not np.array_equal(q, q_g):
            q, lam = self._closest(theta, q_g, q)
        G = self._derivatives(q, lam, theta)[0]
        v = v_g.copy()
        r = np.concatenate([np.zeros(moved.size), -G @ v_g])
        step = np.linalg.solve(self._saddle(eye, G), r)
        v[moved] += step[: moved.size]
        return q, v, lam, step[moved.size :]

    def _closest(self, theta: FloatArray, q_g: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the closed pose closest to q_g, from a closed one, and its multipliers."""
        moved, none = self._moved, np.zeros(self._rows[-1])

        from scipy.optimize import minimize

        def whole(x: FloatArray) -> FloatArray:
            out = q.copy()
            out[moved] = x
            return out

        def distance(x: FloatArray) -> tuple[float, FloatArray]:
            away = x - q_g[moved]
            return 0.5 * float(away @ away), away

        closing: Any = {
            "type": "eq",
            "fun": lambda x: self._c(whole(x), theta),
            "jac": lambda x: self._derivatives(whole(x), none, theta)[0][:, moved],
        }
        options: Any = {"ftol": 1e-14, "maxiter": 500}
        closest = minimize(distance, q[moved], jac=True, method="SLSQP", constraints=[closing], options=options)
        q, eye = whole(np.asarray(closest.x)), np.eye(moved.size)
        G = self._derivatives(q, none, theta)[0]
        lam = np.asarray(np.linalg.lstsq(G[:, moved].T, (q_g - q)[moved], rcond=None)[0], dtype=np.float64)
        for _ in range(_MOST):  # to round-off
            G, H = self._derivatives(q, lam, theta)
            r = np.concatenate([(q - q_g + G.T @ lam)[moved], self._c(q, theta)])
            step = np.linalg.solve(self._saddle(eye + H[np.ix_(moved, moved)], G), -r)
            q[moved] += step[: moved.size]
            lam += step[moved.size :]
            size = float(np.abs(step[: moved.size]).max())
            if size < 1e-12 * (1.0 + float(np.abs(q).max())):
                return q, lam
            if not size < 1.0:
                break
        raise InputError(
            "no closed pose closest to the given start was found",
            expected="starts of joints nearer to a pose in which loops are closed",
        )

    def jvp(
        self,
        theta: FloatArray,
        start: tuple[FloatArray, FloatArray],
        theta_dot: FloatArray,
        tangents: tuple[FloatArray, FloatArray],
    ) -> tuple[FloatArray, FloatArray]:
        """Return the tangents of q and v from theta_dot and those of q_g and v_g."""
        q_dot, v_dot = (part.copy() for part in tangents)
        if not (q_dot.any() or v_dot.any() or theta_dot.any()):
            return q_dot, v_dot
        q, v, lam, kap = self.solve(theta, *start)
        moved, held = self._moved, self.held
        G, H = self._derivatives(q, lam, theta)
        force, rows = self._jvp(q, lam, theta, theta_dot)
        force += H[:, held] @ q_dot[held]
        rows += G[:, held] @ q_dot[held]
        matrix = self._saddle(np.eye(moved.size) + H[np.ix_(moved, moved)], G)
        q_dot[moved] = np.linalg.solve(matrix, np.concatenate([(q_dot - force)[moved], -rows]))[: moved.size]
        force = self._derivatives(q, kap, theta)[1] @ q_dot + self._jvp(q, kap, theta, theta_dot)[0]
        rows = G[:, held] @ v_dot[held]
        for k, unit in enumerate(np.eye(lam.size)):
            by_q = self._derivatives(q, unit, theta)[1] @ q_dot + self._jvp(q, unit, theta, theta_dot)[0]
            rows[k] += v @ by_q
        matrix = self._saddle(np.eye(moved.size), G)
        v_dot[moved] = np.linalg.solve(matrix, np.concatenate([(v_dot - force)[moved], -rows]))[: moved.size]
        return q_dot, v_dot

    def vjp(
        self,
        theta: FloatArray,
        start: tuple[FloatArray, FloatArray],
        cotangents: tuple[FloatArray, FloatArray],
        out: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the cotangents of q_g and v_g; add that of theta to ``out``."""
        q_bar, v_bar = (part.copy() for part in cotangents)
        if not (q_bar.any() or v_bar.any()):
            return q_bar, v_bar
        q, v, lam, kap = self.solve(theta, *start)
        moved, held, m = self._moved, self.held, lam.size
        G, H = self._derivatives(q, lam, theta)
        none = np.zeros(m)
        a, b = self._solve_transposed(self._saddle(np.eye(moved.size), G), v_bar)
        v_bar[moved] = a[moved]
        v_bar[held] -= G[:, held].T @ b
        q_bar -= self._derivatives(q, kap, theta)[1] @ a + self._derivatives(q, b, theta)[1] @ v
        self._vjp(q, kap, theta, -a, none, out)
        self._vjp(q, b, theta, -v, none, out)
        a, b = self._solve_transposed(self._saddle(np.eye(moved.size) + H[np.ix_(moved, moved)], G), q_bar)
        q_bar[moved] = a[moved]
        q_bar[held] -= H[:, held].T @ a + G[:, held].T @ b
        self._vjp(q, lam, theta, -a, -b, out)
        return q_bar, v_bar

    def _solve_transposed(self, matrix: FloatArray, bar: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the two parts of a solution with the symmetric matrix, the first over all coordinates."""
        moved, a = self._moved, np.zeros(self.n)
        solution = np.linalg.solve(matrix, np.concatenate([bar[moved], np.zeros(matrix.shape[0] - moved.size)]))
        a[moved] = solution[: moved.size]
        return a, solution[moved.size :]
