"""Datasets of somebody's own pictures: where they are, what is said of them, and the file that is made of both."""
