"""Loops of the user's program: those that run while they are traced, and those that become loops of the program."""
