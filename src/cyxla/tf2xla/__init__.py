"""The bridge from graphs to HLO: graphs run symbolically, and what is computed is emitted instead."""
