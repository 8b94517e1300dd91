"""From a checked scene to the objects that run: the only place where words become objects."""
