"""A page to play with: pictures for any words, traversals, a map of encodings; one file, no server."""
