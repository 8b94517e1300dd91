"""`add carry`, `add compare`, `add converge`, `add next`: their arguments and what they say."""

from pathlib import Path
from typing import Any

import click

from add.commands.cli_runs import loaded_scene, write_and_say_report
from add.commands.console import Console, console_options, say_left_behind, strict_option, tell
from add.errors import InputError


@click.command(short_help="Write the numbers of a fit into another scene.")
@click.argument("run", type=click.Path())
@click.argument("scene", type=click.Path())
@click.option("--parameter", "parameters", multiple=True, help="A number of the fit to use [default: all properties].")
@click.option("-o", "--output", required=True, type=click.Path(), help="Scene to write, such as throw_fitted.json.")
@click.option("--force", is_flag=True, help="Replace a scene that is already there.")
@console_options
@strict_option
def carry(console: Console, run: str, scene: str, *, parameters: tuple[str, ...], output: str, force: bool) -> None:
    """Write SCENE with the numbers that the fit or optimisation in RUN found, such as a material.

    What belongs to one motion stays behind, unless --parameter names it: starts, what drives bodies over time, numbers
    of a recording or of one take.
    """
    from add.commands.next_take import carry as carried_into
    from add.io.runfolder import RunFolder

    path = Path(output)
    if path.exists() and not force:
        raise InputError("is already there", file=path, expected="another name, or --force")
    if not path.parent.is_dir():
        raise InputError("no such folder", file=path.parent)
    found, numbers, left = carried_into(loaded_scene(console, scene), RunFolder(run, create=False), parameters)
    for label, value in numbers.items():
        console.say(f"  {label} = {value:.6g}")
    say_left_behind(console, left)
    found.save(path)
    console.say(f"scene: {path}")
    console.result({"scene": str(path), "parameters": numbers, "left_behind": left})


@click.command(short_help="Run SCENE under several friction laws.")
@click.argument("scene", type=click.Path())
@click.option(
    "--laws",
    default="linear,tanh,hybrid,impulse,exact",
    show_default=True,
    metavar="LAW,LAW,...",
    help="Friction laws to run it under.",
)
@console_options
def compare(console: Console, scene: str, laws: str) -> None:
    """Run SCENE under several friction laws: where bodies end, the objective's gradient and times, side by side.

    A law that the scene cannot run under is named with the reason; the integrator is changed where a law asks for it.
    """
    from add.commands.compare import compare_laws, comparison_json, comparison_text, require_laws

    names = [law.strip() for law in laws.split(",") if law.strip()]
    require_laws(names)
    runs = compare_laws(loaded_scene(console, scene), names)
    console.say(comparison_text(runs))
    console.result(comparison_json(runs))


# --- `add converge`: its arguments and what it says -------------------------------------------------------------------


@click.command(short_help="Say what finer steps and meshes change of a fit.")
@click.argument("scene", type=click.Path())
@click.option("-o", "--output", help="Run folder of the fit [default: runs/NAME for the file NAME.json].")
@click.option("--time-levels", type=click.IntRange(0, 6), default=2, show_default=True, help="Halvings of the step.")
@click.option(
    "--mesh-levels", type=click.IntRange(0, 4), default=1, show_default=True, help="Halvings of the mesh width."
)
@click.option(
    "--finer",
    multiple=True,
    type=click.Path(),
    help="A JSON file of overrides that give the same bodies a finer mesh, instead of halved meshes; may be repeated, "
    "each finer than the one before.",
)
@console_options
@strict_option
def converge(
    console: Console, scene: str, output: str | None, time_levels: int, mesh_levels: int, finer: tuple[str, ...]
) -> None:
    """Fit the numbers of SCENE again with finer steps and meshes, after `add optimize`.

    The change enters the error bars of the run: discretisation.json, result.json and the report of its folder. What
    it will take is said first; a study that was stopped goes on with the same command.
    """
    from add.commands.converge import Levels, converge_scene
    from add.io.runfolder import RunFolder

    loaded = loaded_scene(console, scene)
    folder = RunFolder(output or Path("runs") / Path(scene).stem, create=False)
    found = converge_scene(loaded, folder, Levels(time_levels, mesh_levels, finer), progress=tell)
    for text in convergence_lines(found):
        console.say(text)
    write_and_say_report(console, folder)
    console.result(found)


def convergence_lines(found: dict[str, Any]) -> list[str]:
    """Return what a study found, a line for each number."""
    lines = []
    for name, entry in found["parameters"].items():
        lines.append(f"  {name} = {entry['value']:.6g} {entry['unit']}, discretisation error {entry['error']:.2g}")
        for kind in ("time", "mesh"):
            if kind in entry:
                item = entry[kind]
                values = ", ".join(f"{value:.6g}" for value in item["values"])
                assumed = "" if len(item["values"]) > 2 else " (assumed)"
                order = f"order {item['order']:.2g}{assumed}" if item["converges"] else "DOES NOT CONVERGE"
                lines.append(f"    {kind}: {values}: {order}, error {item['error']:.2g}")
    return lines + [f"  note: {text}" for text in found["doubts"]]


# --- `add next`: its arguments and what it says -----------------------------------------------------------------------


@click.command("next", short_help="Say which motion to record next.")
@click.argument("run", type=click.Path())
@click.argument("scenes", nargs=-1, required=True, type=click.Path())
@click.option(
    "--vary",
    "variations",
    multiple=True,
    metavar="PATH=A,B,...",
    help="Try each scene with these values of a number, such as bodies.block.position.2=0.1,0.3.",
)
@click.option("--parameter", "parameters", multiple=True, help="A number of the fit to look at [default: all].")
@click.option("--for", "number", metavar="LABEL", help="Sort by this number alone.")
@console_options
@strict_option
def next_take(
    console: Console, run: str, scenes: tuple[str, ...], *, variations: tuple[str, ...], parameters: tuple[str, ...],
    number: str | None,
) -> None:  # fmt: skip
    """Say which of SCENES, recorded, would narrow the numbers of the fit in RUN most.

    Each is run once with the fitted numbers. From the slopes of its markers, the noise that the fit left over and the
    errors of the fit follow the errors of both together; where a motion starts is taken as known, and what steps and
    meshes are off is left out: no recording narrows it.
    """
    from add.commands.next_take import next_takes
    from add.io.runfolder import RunFolder
    from add.scene import apply_overrides

    candidates = []
    for file in scenes:
        scene = loaded_scene(console, file)
        cases = [(Path(file).stem, scene)]
        for text in variations:
            path, _, values = text.partition("=")
            try:
                numbers = [float(value) for value in values.split(",")]
            except ValueError:
                raise click.UsageError(f"--vary {text}: a path, '=', and numbers with commas between them") from None
            cases = [
                (f"{name}, {path} = {value:g}", apply_overrides(one, {path: value}))
                for name, one in cases
                for value in numbers
            ]
        candidates += cases
    found = next_takes(candidates, RunFolder(run, create=False), parameters, number)
    for one in found:
        console.say(f"{one.name}: errors x {one.narrowing:.3g}")
        for label, before, after in zip(one.labels, one.before, one.after, strict=True):
            console.say(f"  {label} +- {before:.3g} -> {after:.3g}")
    console.result([one.summary() for one in found])
