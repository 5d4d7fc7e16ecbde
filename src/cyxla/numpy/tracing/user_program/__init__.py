"""The user's program around a trace: its frames and handlers, and values that its Python code looks at."""
