"""Datasets of the Hugging Face hub, for whoever has pictures there."""
