"""StableHLO: the text form that other programs write, read into HLO."""
