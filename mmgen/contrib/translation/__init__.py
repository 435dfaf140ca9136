"""Sentences in several languages: data, measures and a figure for translation (Wu and Goodman, 2018, Section 7)."""
