"""Using a trained model: from a description to z, and from z to pictures; the one way of it."""
