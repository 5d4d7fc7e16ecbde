"""Source of functions: syntax trees, names and scopes, and their transformation into calls of `Hooks`."""
