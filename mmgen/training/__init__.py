"""One loop for model, aggregate and classifier."""
