"""The scene format: one pydantic class for each object of the file, and its JSON Schema."""
