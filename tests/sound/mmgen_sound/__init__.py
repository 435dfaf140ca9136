"""Sounds for mmgen."""
