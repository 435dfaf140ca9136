"""What does it look like? Grids of samples, the abstraction hierarchy, latent maps, learning curves, the report.

Drawing (``grids``, ``latent_maps``, ``curves``) works on plain arrays; ``draws`` gets them from a loaded model;
``report`` puts everything on one page. Pictures are PIL images or matplotlib figures without pyplot's state.
"""
