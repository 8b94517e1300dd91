"""Coverage of the error bars from takes: how many 95 % intervals hold the truth where numbers vary between takes.

A damped pendulum of small angle is recorded in K takes. Its frequency and its damping are shared, each take has its own
release. Frequency and damping of every take are drawn about the truth; so is the noise. `blind` takes are recorded so
briefly that they hardly see frequency and damping. The fit is that of all takes together, linear about the truth, and
its bars are those of `add optimize` (`add.inverse.uncertainty.uncertainty_of_rows`). `jackknife` is what they were.

    python -m scripts.takes_coverage            # 400 repetitions of every row, some minutes
    python -m scripts.takes_coverage -n 100
"""

from __future__ import annotations

import argparse
from typing import final

import numpy as np
from scipy.special import stdtrit

from add.inverse import DesignParameter, InverseProblem
from add.inverse.fit_rows import FitRows
from add.inverse.maps import Linear
from add.inverse.uncertainty import Uncertainty, uncertainty_of_rows
from add.typing import FloatArray

RATE, LENGTH, SHORT = 60.0, 2.0, 0.12
FREQUENCY, DAMPING, RELEASE = 6.0, 0.4, 0.1
NOISE = 1e-3


@final
class Takes:
    """Takes of one pendulum: angle = release exp(-damping t) cos(frequency t), linear in its numbers."""

    def __init__(self, n_takes: int, blind: int = 0) -> None:
        lengths = [SHORT if k < blind else LENGTH for k in range(n_takes)]
        self.times = [np.arange(1.0, round(RATE * length)) / RATE for length in lengths]
        numbers = [("frequency", FREQUENCY), ("damping", DAMPING)]
        numbers += [(f"release@{k}", RELEASE) for k in range(n_takes)]
        none = {"lower": -np.inf, "upper": np.inf, "entries": (0,), "targets": {}}
        self.problem = InverseProblem(
            (),
            tuple(
                DesignParameter(name, "-", k, np.array([value]), Linear(), value, **none)  # type: ignore[arg-type]
                for k, (name, value) in enumerate(numbers)
            ),
        )
        self.slopes = [self._slopes(k, times) for k, times in enumerate(self.times)]

    def _slopes(self, take: int, t: FloatArray) -> FloatArray:
        swing = np.exp(-DAMPING * t)
        out = np.zeros((t.size, self.problem.n))
        out[:, 0] = -RELEASE * swing * t * np.sin(FREQUENCY * t) * FREQUENCY
        out[:, 1] = -RELEASE * swing * t * np.cos(FREQUENCY * t) * DAMPING
        out[:, 2 + take] = RELEASE * swing * np.cos(FREQUENCY * t)
        return out

    def fit(self, rng: np.random.Generator, spread: tuple[float, float]) -> tuple[FloatArray, Uncertainty]:
        """Return the errors of frequency and damping in a fit of takes that are drawn, and its uncertainty.

        Parameters
        ----------
        spread : standard deviations of frequency and damping between takes, as shares of their values
        """
        recorded = []
        for slopes in self.slopes:
            own = np.zeros(self.problem.n)
            own[:2] = rng.normal(size=2) * spread
            recorded.append(slopes @ own + NOISE * rng.normal(size=len(slopes)))
        x = np.linalg.lstsq(np.concatenate(self.slopes), np.concatenate(recorded), rcond=None)[0]
        rows = []
        for k, (slopes, values) in enumerate(zip(self.slopes, recorded, strict=True)):
            residual = slopes @ x - values
            frame = np.arange(residual.size)
            rows.append(FitRows(f"take {k}", frame, 0 * frame, ("m",), residual, slopes, float(residual @ residual)))
        found = uncertainty_of_rows(self.problem, x + 1.0, rows, 1.0)
        assert found is not None
        return x[:2] * (FREQUENCY, DAMPING), found


def jackknife(found: Uncertainty, scale: FloatArray) -> FloatArray:
    """Return half widths of the intervals that left one take out (K - 1 degrees of freedom)."""
    normals = [item.slopes.T @ item.slopes for item in found.rows]
    total = np.sum(normals, axis=0)
    moved = np.array([np.linalg.pinv(total - normal, rcond=1e-12, hermitian=True) @ item.slopes.T @ item.residual
                      for item, normal in zip(found.rows, normals, strict=True)])  # fmt: skip
    count = len(moved)
    error = scale * np.sqrt((count - 1.0) / count * ((moved - moved.mean(axis=0)) ** 2).sum(axis=0))
    statistical = np.fmax(np.fmax(found.noise, found.correlated), error)
    return np.asarray(stdtrit(count - 1.0, 0.975) * statistical)


def main() -> None:
    """Print a row for each number of takes and spread."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--repetitions", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    print("| takes | that hardly see it | spread | | 95 % intervals that hold the truth | of the jackknife |"
          " median half width over 1.96 times the scatter | largest | of the jackknife |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|")
    for count, blind in ((2, 0), (3, 0), (4, 0), (6, 0), (10, 0), (2, 1), (4, 2), (6, 2), (6, 5)):
        takes = Takes(count, blind)
        for share in (0.0, 0.02, 0.1):
            rng = np.random.default_rng(asked.seed)
            errors, widths, before = np.zeros((3, asked.repetitions, 2))
            for i in range(asked.repetitions):
                errors[i], found = takes.fit(rng, (share / 10.0, share))
                widths[i] = found.half_widths[:2]
                before[i] = jackknife(found, takes.problem.design.scale)[:2]
            for j, name in enumerate(("frequency", "damping")):
                scatter = 1.96 * np.sqrt((errors[:, j] ** 2).mean())
                print(
                    f"| {count} | {blind} | {100 * (share / 10.0, share)[j]:g} % | {name} "
                    f"| {100 * (np.abs(errors[:, j]) <= widths[:, j]).mean():.0f} % "
                    f"| {100 * (np.abs(errors[:, j]) <= before[:, j]).mean():.0f} % "
                    f"| {np.median(widths[:, j]) / scatter:.2f} | {widths[:, j].max() / scatter:.3g} "
                    f"| {before[:, j].max() / scatter:.3g} |",
                    flush=True,
                )  # fmt: skip


if __name__ == "__main__":
    main()
