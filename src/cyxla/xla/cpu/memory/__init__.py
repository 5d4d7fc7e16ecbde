"""Buffer assignment: lifetimes, the arena, donated arguments."""
