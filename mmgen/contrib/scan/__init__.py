"""SCAN (Higgins et al., 2018): a density of words fitted to encodings."""
