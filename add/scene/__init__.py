"""Scene files: the format (`spec`), the reader and the builder."""
