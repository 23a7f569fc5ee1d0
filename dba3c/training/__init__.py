"""One training run: the loop, and everything around it."""
