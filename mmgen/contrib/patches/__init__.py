"""Characters and patches of Salakhutdinov's lecture: OMNIGLOT, BSDS, their presets, and a figure of filters."""
