"""Datasets of the user's own pictures: sources, tables about them, and the file made from both."""
