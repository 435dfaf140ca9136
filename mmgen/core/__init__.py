"""The base of all rooms: errors, seeding, progress, batches, and bounded reading of untrusted text and files."""
