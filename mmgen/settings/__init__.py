"""Typed settings and presets of experiments, and registries of exchangeable classes (members), plug-ins included."""
