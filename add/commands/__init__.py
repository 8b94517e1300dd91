"""The commands: a scene in, a run folder out. Nothing is imported here, so that `add --help` is quick."""
