"""Graphs: auto-encoders of nodes and edges (Kipf and Welling, 2016) on Planetoid, for whoever predicts links."""
