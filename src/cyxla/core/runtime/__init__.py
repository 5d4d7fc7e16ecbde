"""Running graphs: devices, placement, executors, sessions, and ops applied at once."""
