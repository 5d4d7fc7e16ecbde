"""The compiled extension modules, and the slow path of a call, which they share."""
