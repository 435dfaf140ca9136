"""Multimodal VAEs of 2019 to 2024: CdSprites+ (Sejnova et al., 2024), digits on five grounds, coherence, probes."""
