"""Steps of the recipe of a program, by the kind of operation."""
