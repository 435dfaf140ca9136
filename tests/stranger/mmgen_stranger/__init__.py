"""Members of mmgen that are not part of it."""
