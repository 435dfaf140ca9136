"""The whole generative model: build, infer, decode, sample; no loss, no files."""
