"""`add carry`: another scene with the numbers that a fit found."""

from add.commands.fitted_numbers import carried, fit_of, of_one_motion, require_same_laws
from add.io.runfolder import RunFolder
from add.scene import Scene
from add.scene.build.write_back import with_numbers


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
