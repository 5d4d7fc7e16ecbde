"""HLO and running it."""
