"""Figures and pages: grids of samples, hierarchies of concepts, maps of z, learning curves, reports.

Drawing (``grids``, ``latent_maps``, ``curves``) works on plain arrays; ``draws`` gets them from a loaded model;
``report`` puts everything on one page. Pictures are PIL images or matplotlib figures without pyplot's state.
"""
