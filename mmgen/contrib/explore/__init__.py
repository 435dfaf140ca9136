"""Interactive page to explore a model: pictures for chosen descriptions, traversals of z, a map of encodings."""
