"""Arrays from nothing or like others."""
