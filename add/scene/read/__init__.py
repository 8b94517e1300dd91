"""From a file to a checked scene: JSON, paths, validation, checks across sections."""
