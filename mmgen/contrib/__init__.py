"""Worlds beside the core, each for one paper or one kind of user; the core works without any of them."""
