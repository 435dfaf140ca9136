"""DRAW (Gregor et al., 2015) and alignDRAW (Mansimov et al., 2016): pictures in steps, their captions and figures."""
