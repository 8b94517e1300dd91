"""The error of a system without compiled steps."""


class NotCompiled(Exception):
    """A system has something that compiled steps lack; the text names it."""
