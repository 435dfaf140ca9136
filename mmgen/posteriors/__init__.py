"""Posteriors: densities over z given what is known."""
