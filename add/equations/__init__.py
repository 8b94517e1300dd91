"""The equations of motion: coordinates, parameters, the terms that act on them, and their sum."""
