"""A function with an assertion, in a module whose assertions pytest does not rewrite."""


def sum_of_small(x):
    for v in x:
        assert v < 100, "too large"
    return x.sum()
