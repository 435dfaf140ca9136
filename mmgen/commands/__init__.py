"""Stages: one module a stage."""
