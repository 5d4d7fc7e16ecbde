"""The compiled modules, and the slow path of a call that they share."""
