"""Results: scores, their grouping by seed, comparisons and published numbers."""
