"""Likelihoods by importance weighting: where z is drawn from, what the draws weigh, and how wrong the result may be."""
