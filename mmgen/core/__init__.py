"""What every room uses: errors, seeding, progress, batches, and bounded reading of untrusted text and files."""
