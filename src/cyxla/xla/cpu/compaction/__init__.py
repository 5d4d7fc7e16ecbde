"""Custom calls that compact arrays by a mask."""
