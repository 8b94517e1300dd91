"""Pictures, films and a window of a run, through pyvista, which is imported when something is drawn."""

from add.view.look import Look
from add.view.quantities import COLOURS
from add.view.render import Camera, export_html, movie, screenshot
from add.view.window import Screen, show

__all__ = ["COLOURS", "Camera", "Look", "Screen", "export_html", "movie", "screenshot", "show"]
