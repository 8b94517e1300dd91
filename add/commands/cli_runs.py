"""The commands that show a run: view, plot, info, the last also a robot."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from add.commands import console as shared
from add.commands.console import Console, counted_bar, samples_bar, say_contents
from add.errors import InputError, OutOfMemory
from add.machine.interrupts import default_stops
from add.summary import counted

NO_MEMORY = "the memory was not enough"


class Stopped(click.ClickException):
    """A command was stopped: by what, and what is kept."""

    def __init__(self, stop: KeyboardInterrupt, kept: str) -> None:
        super().__init__(kept)
        self.stop = stop


@contextmanager
def keeping(folder: Any, scene: str) -> Iterator[None]:
    """Let a command that is stopped say what its run folder keeps, and how to go on."""
    from add.commands.folders import kept_in

    try:
        yield
    except KeyboardInterrupt as stop:
        raise Stopped(stop, kept_in(folder, scene)) from stop
    except MemoryError as error:
        raise OutOfMemory(f"{NO_MEMORY}; {kept_in(folder, scene)}") from error


@contextmanager
def workers_for(jobs: int | None, cluster: str | None) -> Iterator[Any]:
    """Yield who does the work: processes of this machine, or a cluster."""
    from add.commands.parallel import cluster as at_address
    from add.commands.parallel.workers import LocalProcesses
    from add.machine.files import cores

    if cluster is None:
        yield LocalProcesses(jobs or cores())
        return
    if jobs is not None:
        raise click.UsageError("--jobs is for this machine: a cluster has as many workers as it has.")
    with at_address(cluster) as workers:
        yield workers


@contextmanager
def sampling(console: Console, loaded: Any, scene: str, at: Path, command: str, force: bool) -> Iterator[Any]:
    """Give the folder of a run of many samples, one that goes on or an empty one, and what is told its progress."""
    from add.commands.folders import clear
    from add.io.runfolder import RunFolder

    folder = RunFolder(at, overwrite=True)
    with folder.locked(command), keeping(folder, scene), samples_bar(console, command) as progress:
        if force or not folder.is_run:
            clear(folder, loaded)
        yield folder, progress


def run_path(scene: str, output: str | None, mark: str = "") -> Path:
    """Return where the run of a scene is to lie, where nobody says it under the name of its file and ``mark``."""
    if output is not None and not output.strip():  # such as that of a variable that is not set
        raise InputError("no name of a folder", place="-o", found=f"'{output}'", expected="a run folder")
    return Path(output or f"runs/{Path(scene).stem}{mark}")


def say_experiments(console: Console, loaded: Any) -> None:
    """Say that a scene is taken without what its experiments override."""
    if text := loaded.without_experiments:
        console.say(f"{text}; `add optimize` runs each")


def existing(path: Any) -> Any:
    """Return the folder of a run that is there."""
    from add.io.runfolder import RunFolder

    return RunFolder(path, create=False)


def trajectory_of(path: Path) -> Any:
    """Read the trajectory of a run's folder, or of a file."""
    from add.commands.folders import to_view
    from add.io.trajectory_file import read_run

    return read_run(to_view(existing(path)) if path.is_dir() else path)


def loaded_scene(console: Console, scene: str, *, runs: bool = False) -> Any:
    """Load a scene, and let the user know if the command then has to compile kernels.

    For one that ``runs`` a second process compiles beside it (`add.commands.ahead`).
    """
    from add.commands.beside import begin, ended, nothing_kept

    context = click.get_current_context()
    processes: list[Any] = []

    def compile_beside() -> None:
        if runs and not processes and (process := begin(scene)):
            processes.append(process)
            context.call_on_close(lambda: ended(process))

    if nothing_kept():  # it loads what it needs while this one does
        compile_beside()
    from add.commands.ahead import first_compilation
    from add.scene import load_scene

    def begun() -> None:
        console.compiling()
        compile_beside()

    context.with_resource(first_compilation(begun))
    return load_scene(scene)


def write_and_say_report(console: Console, folder: Any) -> None:
    """Draw the diagrams of a fit, write its reports and say where they are."""
    from add.commands.report import write_report
    from add.io.runfolder import REPORT_HTML

    with counted_bar(console, "drawing", "run") as drawn:
        report = write_report(folder, progress=drawn)
    console.say(f"report: {report}, {report.with_name(REPORT_HTML).name}")


def _size(context: click.Context, option: click.Parameter, value: str | None) -> tuple[int, int] | None:
    """Return width and height in pixels."""
    if value is None:
        return None
    width, _, height = value.lower().partition("x")
    if not (width.isdecimal() and height.isdecimal() and 16 <= int(width) <= 8192 and 16 <= int(height) <= 8192):
        raise click.BadParameter("give width and height from 16 to 8192 pixels, such as 1280x800", context, option)
    return int(width), int(height)


@click.command(short_help="Look at RUN, a scene or a robot.")
@shared.run
@click.option(
    "--quantity",
    "--colour",
    "--color",
    "colour",
    type=click.Choice(["displacement", "speed", "strain", "stress", "contact"]),
    default="displacement",
    show_default=True,
)
@click.option("--camera", default="fit", show_default=True, metavar="PLACE")
@click.option("--size", callback=_size, metavar="WxH")
@click.option("--edges", is_flag=True, help="Draw the edges of the elements on the surface.")
@click.option("--forces/--no-forces", "arrows", default=None)
@click.option("--plain", is_flag=True, help="Without shadows and ambient occlusion: faster.")
@click.option("--live", is_flag=True)
@click.option("--experiment", metavar="NAME", help="Of several experiments: whose motion [default: the first].")
@click.option("--screenshot", type=click.Path(), help="Write a picture instead of opening a window.")
@click.option("--movie", type=click.Path(), help="Write an mp4 or gif instead of opening a window.")
@click.option("--html", type=click.Path(), help="Write an interactive page instead of opening a window.")
@click.option("--time", "at", type=float, help="Time of the screenshot or the page [s] [default: the end].")
@click.option("--fps", type=click.IntRange(min=1), default=30, show_default=True, help="Frames a second of the movie.")
@click.option("--speed", type=float, default=1.0, show_default=True)
@shared.robot
@shared.console
def view(
    console: Console,
    run: str,
    *,
    size: tuple[int, int] | None,
    live: bool,
    experiment: str | None,
    screenshot: str | None,
    movie: str | None,
    html: str | None,
    at: float | None,
    **options: Any,
) -> None:
    """Look at RUN (a run folder), at a scene file as it starts, or at a robot's file (URDF, MJCF).

    Options
    -------
    --quantity : What colours the bodies: way from the start, speed, largest strain, von Mises stress, or contact force.
    --camera : Where the camera stands: fit, front, back, left, right, top, or a direction x,y,z; with 'follow' before
        it, as in 'follow front', it moves with the bodies.
    --size : Of pictures and films, in pixels [default: 1280x800, of films 1280x720].
    --forces : Contact forces as arrows [default: with --quantity contact].
    --live : Follow a run that is going on: the window grows as its states are kept, every 20 s.
    --speed : Playing speed of the movie; 0.1 is slow motion.
    """
    from add.view import Look, export_html, movie as render_movie, screenshot as render_screenshot, show

    if live and (screenshot or movie or html or not Path(run).is_dir()):
        raise click.UsageError("--live follows a run folder in the window.")
    if live and experiment:
        raise click.UsageError("--live and --experiment exclude each other: motions of a fit are whole.")
    forces = options["arrows"] or options["colour"] == "contact" or not (screenshot or movie or html)
    data = _run_data(console, run, options.pop("base"), options.pop("ignore"), forces, experiment)
    fps, speed = options.pop("fps"), options.pop("speed")
    look = Look(**options)
    written = []
    if screenshot:
        written.append(render_screenshot(data, screenshot, time=at, look=look, size=size or (1280, 800)))
    if movie:
        with counted_bar(console, Path(movie).name, "frame") as drawn:
            size = size or (1280, 720)
            written.append(render_movie(data, movie, fps, speed, look=look, size=size, progress=drawn))
    if html:
        with counted_bar(console, Path(html).name, "frame") as drawn:
            written.append(export_html(data, html, time=at, look=look, progress=drawn))
    console.files(written)
    if not (screenshot or movie or html):
        default_stops()  # a window would not let Python answer, and keeps nothing
        show(data, look=look, more=_more(Path(run)) if live else None)


def _more(folder: Path) -> Callable[[], Any]:
    """Return what reads the trajectory of a run folder again where it has been written anew; None otherwise."""
    from add.commands.folders import to_view
    from add.io.trajectory_file import read_run

    path = to_view(existing(folder))
    seen = path.stat().st_mtime_ns

    def more() -> Any:
        nonlocal seen
        written = path.stat().st_mtime_ns
        if written == seen:
            return None
        seen = written
        return read_run(path)

    return more


def _run_data(
    console: Console, run: str, base: str | None, ignore: tuple[str, ...], forces: bool, experiment: str | None
) -> Any:
    """Read a run folder, or build the first state of a scene or a robot."""
    from add.commands.export import experiment_of
    from add.scene.build.run_data import start_data
    from add.scene.build.scene import build as built_scene

    path = Path(run)
    robot = _is_robot(path)
    if (base or ignore) and not robot:
        raise click.UsageError("--base and --ignore are for a robot's file.")
    if robot and experiment:
        raise click.UsageError("--experiment is for runs and scenes.")
    if robot:
        return start_data(_robot_scene(console, path, base, ignore).build(), contacts=forces)
    if not (path.is_file() and path.suffix == ".json"):
        return trajectory_of(shared.motion_of(console, run, experiment))
    scene = loaded_scene(console, run)
    if experiment is None:
        say_experiments(console, scene)
    else:
        scene = experiment_of(scene, experiment)
    return start_data(built_scene(scene), contacts=forces)


@click.command(short_help="Draw the diagrams of RUN.")
@shared.run
@click.option("--format", "suffix", type=click.Choice(["png", "svg"]), default="png", show_default=True)
@click.option("--log/--linear", "logarithmic", default=None)
@shared.console
def plot(console: Console, run: str, suffix: str, logarithmic: bool | None) -> None:
    """Draw convergence, energies and markers of RUN, or the objective over the grid of a sweep.

    Options
    -------
    --format : Of the pictures: pixels or lines.
    --log : Scale of the objective over the grid of a sweep [default: --log where its range is wide].
    """
    from add.plot import plot_run

    with counted_bar(console, "drawing", "run") as drawn:
        paths = plot_run(run, format=suffix, logarithmic=logarithmic, progress=drawn)
    console.files(paths)


@click.command(short_help="Say what RUN or a robot's file holds.")
@shared.run
@shared.robot
@click.option("--up", type=click.Choice(["x", "y", "z"]), help="Of a robot: axis of the file that points up.")
@click.option("--repair", is_flag=True, help="Of a URDF: make impossible inertias possible.")
@shared.console
def info(console: Console, run: str, base: str | None, up: str | None, ignore: tuple[str, ...], repair: bool) -> None:
    """Say what RUN holds, a robot's file (URDF, MJCF) or a scene; of a run that was cut, how to go on."""
    if not Path(run).exists():
        raise InputError("there is no such file", file=run, expected="a run, a robot (URDF, SDF, MJCF) or a scene")
    from add.commands.folders import remains
    from add.commands.report_texts import one_by_one

    if _is_robot(Path(run)):
        from add.commands.file_contents import robot_json, robot_lines, robot_problems
        from add.scene.robots import read_robot

        options: dict[str, Any] = {"base": base, "up": up or "z", "ignore": ignore, "repair": repair}
        robot = read_robot(run, **options)
        for line in robot_lines(robot, run):
            console.say(line)
        warnings = robot_problems(robot, Path(run).absolute(), options)
        for text in warnings:
            console.say(f"  warning: {text}")
        console.heed(warnings)
        console.result(robot_json(robot) | {"warnings": warnings})
        return
    if base or up or ignore or repair:
        raise click.UsageError("--base, --up, --ignore and --repair are for a robot's file.")
    if Path(run).suffix == ".json" and Path(run).is_file():
        _say_scene(console, run)
        return
    if Path(run).is_file():
        raise InputError(
            "neither a run, a robot nor a scene",
            file=run,
            expected="a folder written by `add`, a URDF, an SDF, an MJCF, JSON",
        )
    folder = existing(run)
    result, versions = folder.known("result.json"), folder.known("versions.json")
    left = remains(folder)
    command, status = (left.command, left.status) if left else (result.get("command"), result["status"])
    command = command or "a run"
    console.say(f"{folder.path}: {command}, {status}" + (f": {result['scene']}" if result.get("scene") else ""))
    if result.get("message"):
        console.say(f"  {result['message']}")
    if left:
        console.say(f"  kept: {left.kept}; {left.advice}")
    say_contents(console, result, *one_by_one(result.get("parameters", {})))
    if versions:
        console.say("  " + ", ".join(f"{key} {value}" for key, value in versions.items()))
    console.result({"result": result or None, "versions": versions, "unfinished": left._asdict() if left else None})


def _say_scene(console: Console, path: str) -> None:
    """Say what a scene is made of, without running it."""
    from add.scene.build.built import material_sources
    from add.scene.build.scene import build

    built = build(loaded_scene(console, path))
    spec, system = built.scene, built.model.system
    console.say(f"{path}: a scene" + (f", {spec.name}" if spec.name else ""))
    if spec.description:
        console.say(f"  {spec.description}")
    console.say(
        f"  {counted(spec.time.n_steps, 'step')} of {spec.time.dt:g} s by {spec.time.integrator}, "
        f"{counted(system.n, 'coordinate')}"
    )
    for name, body in spec.bodies.items():
        console.say(f"  body {name}: {body.type}")
    for at, source in material_sources(built).items():
        console.say(f"  {at}: {source}")
    for kind in ("obstacles", "couplings", "markers", "signals"):
        if names := list(getattr(spec, kind)):
            console.say(f"  {kind}: {', '.join(names)}")
    console.say(f"  {built.numbers.values.size} numbers, of which {len(spec.parameters)} are looked for")
    console.result({
        "scene": spec.name, "bodies": {name: body.type for name, body in spec.bodies.items()},
        "steps": spec.time.n_steps, "dt": spec.time.dt, "coordinates": system.n,
        "numbers": int(built.numbers.values.size),
    })  # fmt: skip


def _robot_scene(console: Console, path: Path, base: str | None, ignore: tuple[str, ...]) -> Any:
    """Return a scene with nothing but a robot, as its file poses it."""
    from add.commands.ahead import first_compilation
    from add.commands.file_contents import robot_alone
    from add.scene.robots import read_robot

    robot = read_robot(path, base=base, ignore=ignore)  # an error names the file alone
    click.get_current_context().with_resource(first_compilation(console.compiling))
    body = {
        "model": str(path.resolve()), "base": base, "ignore": list(ignore),
        "static_shapes": True,  # the base, where it stands still: without it the robot is cut open
    }  # fmt: skip
    return robot_alone(robot, body, contact={"stiffness": 1.0})


def _is_robot(path: Path) -> bool:
    """Whether a path is to be read as a robot: a file by its ending, or one that begins as XML does."""
    if path.suffix.lower() in (".urdf", ".xml", ".mjcf", ".xacro", ".sdf"):
        return not path.is_dir()
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")
