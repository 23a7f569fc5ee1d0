"""Games of an agent as films."""
