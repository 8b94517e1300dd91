"""`add next`, which motion would narrow the numbers of a fit most, and `add carry`, which hands them on."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag

from add.commands.fitted_numbers import carried, fit_of, of_one_motion, require_same_laws
from add.commands.predict import Motion
from add.errors import InputError
from add.io.runfolder import RunFolder
from add.scene import Scene
from add.scene.build.write_back import with_numbers
from add.typing import FloatArray

#: Times at which a motion without a recording is seen, at most.
MOST_TIMES = 200


class Candidate(NamedTuple):
    """A motion that might be recorded.

    Attributes
    ----------
    name : str
    labels : (n,) numbers of the fit that it has
    before, after : (n,) standard errors of the fit, and of the fit and the motion together, from noise and takes
    samples : coordinates that are seen, over what one of them is worth
    """

    name: str
    labels: tuple[str, ...]
    before: FloatArray
    after: FloatArray
    samples: float

    @property
    def narrowing(self) -> float:
        """The geometric mean of after / before, 1 for a motion that shows nothing."""
        known = (self.before > 0.0) & np.isfinite(self.before)
        return float(np.exp(np.log(self.after[known] / self.before[known]).mean())) if known.any() else 1.0

    def summary(self) -> dict[str, Any]:
        """Return it as `add next --json` prints it."""
        errors = {
            label: {"before": before, "after": after}
            for label, before, after in zip(self.labels, self.before, self.after, strict=True)
        }
        return {"name": self.name, "narrowing": self.narrowing, "samples": self.samples, "errors": errors}


def narrowed(covariance: FloatArray, slopes: FloatArray) -> FloatArray:
    """Return the covariance (n, n) of numbers after samples with ``slopes`` (m, n) over their noise were seen.

    (C^-1 + S^T S)^-1 = R (1 + R^T S^T S R)^-1 R^T with C = R R^T, which needs no inverse of C: a number without an
    error keeps none (linear-Gaussian design of experiments, Chaloner and Verdinelli 1995).
    """
    size, axes = np.linalg.eigh(covariance)
    root = axes * np.sqrt(np.maximum(size, 0.0))
    seen = slopes @ root
    return np.asarray(root @ np.linalg.solve(np.eye(len(size)) + seen.T @ seen, root.T))


def next_takes(
    scenes: Sequence[tuple[str, Scene]], run: RunFolder, paths: tuple[str, ...] = (), number: str | None = None
) -> list[Candidate]:
    """Return the motions by how much they would narrow the numbers of a fit, the best first.

    Each scene is run once with the fitted numbers; its markers count at the times of its recording, or, without one, at
    its steps (200 of them at most). Their noise is what the fit left over, and of samples that hang together as many
    count as did there. Where the motion starts is taken as known, and the discretisation, which no recording narrows,
    is left out.

    Parameters
    ----------
    scenes : (name, scene)
    run : folder of the fit
    paths : numbers of the fit to look at; default: all properties
    number : the one by which to sort; default: all of them, by the geometric mean

    Raises
    ------
    InputError
        If the folder has no fit with error bars, or a scene lacks a number or markers.
    """
    result = fit_of(run)
    looked = [item for item in (result.get("uncertainty") or {}).get("residuals", {}).values() if item["coordinates"]]
    share = min((item["effective"] / item["coordinates"] for item in looked), default=1.0)
    out = []
    for name, scene in scenes:
        motion = Motion.of(scene, run, paths, most=MOST_TIMES)
        covariance = block_diag(*(part.covariance for part in motion.numbers.parts))
        if not covariance.any():
            raise InputError("the fit has no error bars", file=run.path, expected="a fit to a recording")
        if not (motion.noise > 0.0).all():
            raise InputError("the fit says no noise of such markers", file=scene.source, place="markers",
                             expected="markers of the kind that was fitted, of places or of directions")  # fmt: skip
        linear = motion.linear()
        slopes = linear.slopes / motion.noise[:, None, None]
        slopes = np.sqrt(share) * slopes.reshape(-1, slopes.shape[-1])
        after = np.sqrt(np.maximum(np.diag(narrowed(covariance, slopes)), 0.0))
        before = np.sqrt(np.diag(covariance))
        out.append(Candidate(name, motion.numbers.labels, before, after, share * len(slopes)))
    if number is None:
        return sorted(out, key=lambda one: one.narrowing)
    if number not in out[0].labels:
        expected = ", ".join(out[0].labels)
        raise InputError("the fit has no such number", place="--for", found=f"'{number}'", expected=expected)
    place = out[0].labels.index(number)
    return sorted(out, key=lambda one: one.after[place])


# --- `add carry`: another scene with the numbers that a fit found -----------------------------------------------------


def carry(scene: Scene, run: RunFolder, paths: tuple[str, ...] = ()) -> tuple[Scene, dict[str, float], dict[str, str]]:
    """Return a scene with the numbers of a fit in the place of its own, these numbers, and which stay behind and why.

    A start that one of the scene's own parameters has for such a number is dropped: the fit's number is the start then.

    Parameters
    ----------
    scene : another scene than that of the fit
    run : folder of the fit
    paths : numbers that are wanted, see `carried`

    Raises
    ------
    InputError
        If the folder has no fit, or a number is not in the scene, or one of another law there.
    """
    fit = fit_of(run)
    chosen = {label: float(entry["value"]) for label, entry in carried(fit, paths).items()}
    require_same_laws(run, scene, chosen)
    left = of_one_motion(label for label in fit["parameters"] if label not in chosen)
    return with_numbers(scene, chosen), chosen, left
