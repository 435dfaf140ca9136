"""Descriptions: words, expressions and captions, read into what a model is given."""
