"""Pages of pictures and tables: ``mmgen report``, and what ``mmgen show`` draws of a file."""
