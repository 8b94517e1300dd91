"""`add mesh`: a surface made into a volume mesh."""

import re
from pathlib import Path

import click

from add.commands.console import Console, console_options, strict_option
from add.errors import naming

_UNITS = {"m": 1.0, "cm": 1e-2, "mm": 1e-3}


def _length(context: click.Context, option: click.Parameter, value: str | None) -> float | None:
    """Return a length with its unit, such as 5mm, in metres."""
    if value is None:
        return None
    found = re.fullmatch(r"\s*([0-9.eE+-]+)\s*(m|cm|mm)\s*", value)
    try:
        number = float(found.group(1)) if found else 0.0
    except ValueError:
        number = 0.0
    if found is None or not 0.0 < number < float("inf"):
        raise click.BadParameter("give a length with its unit, such as 5mm, 0.5cm or 0.005m", context, option)
    return number * _UNITS[found.group(2)]


@click.command(short_help="Fill a closed surface with tetrahedra.")
@click.argument("surface", type=click.Path())
@click.option("--edge", required=True, callback=_length, help="Length of the element edges, such as 5mm.")
@click.option("-o", "--output", required=True, type=click.Path(), help="Mesh file, such as specimen.msh, in metres.")
@click.option(
    "--unit", type=click.Choice(list(_UNITS)), default="m", show_default=True, help="Of the surface's numbers."
)
@click.option("--tolerance", callback=_length, help="How far the boundary may move [default: 1/1000 of the diagonal].")
@click.option("--fill-holes", is_flag=True, help="Close holes of any size.")
@click.option("--picture", type=click.Path(), help="Draw the mesh and its quality (.png or .svg).")
@console_options
@strict_option
def mesh(
    console: Console,
    surface: str,
    edge: float,
    output: str,
    unit: str,
    tolerance: float | None,
    fill_holes: bool,
    picture: str | None,
) -> None:
    """Repair SURFACE (STL, OBJ, PLY, OFF), fill it with tetrahedra and say how good they are.

    Needs the extra: pip install 'add-sim[mesh]'.
    """
    from add.geometry import SoftMesh
    from add.geometry.mesh_check import mesh_quality
    from add.geometry.triangle_surface import repaired
    from add.io.atomic import replacing
    from add.io.fill import fill, require_mesher
    from add.io.meshes import write_mesh
    from add.io.surfaces import read_surface
    from add.plot.mesh import plot_mesh

    require_mesher()
    scale = _UNITS[unit]
    with naming(file=surface):
        closed = repaired(read_surface(surface), fill=fill_holes)
        for note in closed.notes:
            console.say(f"  repaired: {note}")
        found = fill(closed, edge / scale, None if tolerance is None else tolerance / scale)
    metres = SoftMesh(found.points * scale, found.cells, found.family)
    with replacing(Path(output)) as part:
        write_mesh(part, metres)
    quality = mesh_quality(metres)
    for text in quality.lines():
        console.say(f"  {text}")
    share = quality.volume / (abs(closed.volume) * scale**3) - 1.0
    console.say(f"  volume against the surface's {100.0 * share:+.3f} %")
    if picture:
        console.say(str(plot_mesh(metres, picture)))
    console.say(f"mesh: {output}")
    console.result(
        {
            "mesh": output,
            "nodes": quality.nodes,
            "elements": quality.elements,
            "volume": quality.volume,
            "volume_error": share,
            "worst_shape": float(quality.shapes.min()),
            "angles": [quality.smallest_angle, quality.largest_angle],
            "repairs": list(closed.notes),
        }
    )
