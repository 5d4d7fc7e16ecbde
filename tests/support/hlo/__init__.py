"""HLO modules: random ones, and comparisons of compiled runs with the interpreter."""
