"""What is z? The layers that it consists of, and what one trip x -> z -> x comes to."""
