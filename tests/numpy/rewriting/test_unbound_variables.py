"""Variables that some paths leave unbound: Python's error where one is read, NumPy's result where none is."""

import numpy as np
import pytest

import cyxla

# ruff: noqa: SIM102 - nested branches are what is tested


def last_above(x):
    for i in range(len(x)):
        if x[i] > 100.0:
            y = x[i]
    return y + 1.0


def array_at_first_above(x):
    for i in range(len(x)):
        if x[i] > 100.0:
            y = x * i
            break
    return y


def written_after_the_loop(x):
    for i in range(len(x)):
        if x[i] > 100.0:
            y = x * i
    y[0] = 5.0
    return y


def bound_before_under_a_branch(x):
    if x[0] > 50.0:
        y = x * 3.0
    for i in range(len(x)):
        if x[i] > 200.0:
            y = x * i
    return y


def two_variables_in_nested_loops(x):
    for i in range(len(x)):
        for j in range(i):
            if x[j] > 100.0:
                y = x[j] * i
                z = i
    return y + z


def branches_in_branches(x):
    for i in range(len(x)):
        if x[i] > 100.0:
            y, z = x[i], i
            if x[i] > 200.0:
                z = -i
    return y * z


def read_in_later_iterations(x):
    total = x[0] * 0.0
    for i in range(len(x)):
        if x[i] > 100.0:
            y = x[i]
        elif x[i] > 50.0:
            total += y
    return total


def read_where_it_is_bound(x):
    total = x[0] * 0.0
    for i in range(len(x)):
        if x[i] > 50.0:
            y = x[i]
        if x[i] > 50.0:
            total += y
    return total


def while_without_iterations(x):
    s = 0.0
    while s * x[0] < x[0] - 50.0:
        y = x * s
        s += 1.0
    return y


def while_with_a_branch(x):
    s = 0.0
    while s < x[0]:
        if x[0] > 100.0:
            y = x * s
        s += 1.0
    return y


def nested_branches(x):
    if x[0] > 50.0:
        if x[0] > 100.0:
            y = x * 2.0
    if x[0] > 50.0:
        if x[0] > 100.0:
            return y
    return x


def inner_branch_alone_binds(x):
    if x[0] > 50.0:
        if x[0] > 100.0:
            y = x * 2.0
    return y


def index_of_an_inner_loop(x):
    total = x[0] * 0.0
    for _ in range(30):
        for i in range(int(x[0]) % 7):
            total += x[i]
        total += i
    return total


def handed_on_alone(x):
    for i in range(int(x[0]) % 7):
        x[i] += 1
    last = i  # noqa: F841 - Python reads the variable here
    return x


def element_of_a_list(x):
    for i in range(len(x)):
        if x[i] > 100.0:
            y = x[i]
    return [y, x.sum()][1]


def value_of_a_dict_after_a_deletion(x):
    y = x[0]
    for i in range(len(x)):
        if x[i] > 200.0:
            break
        del y
        y = {"a": x[i], "b": y}["a"]  # noqa: F821
    return y


def argument_that_is_not_used(x):
    if x[0] > 50.0:
        y = x * 3.0
    return _second(y, x[1])


def _second(first, second):
    return second


def compared_by_identity(x):
    if x[0] > 50.0:
        y = x * 3.0
    return 1.0 if y is None else 2.0


def handed_on_by_a_choice(x):
    if x[0] > 50.0:
        y = x[1]
    z = y if x[1] > 0.0 else x[2]
    return x[0] if z is None else x[1]


def array_of_run_time_size(x):
    n = x[0] - 50.0
    while n > 1.0:
        n = n / 2.0
        y = x[x <= n + 50.0]
    return y


def array_of_run_time_size_by_a_branch(x):
    for k in range(3):
        part = x[x > 50.0 * k + 50.0]
        if part.size > 2:
            y = part[1:]
    return y


def in_a_loop_that_appends(x):
    counts = []
    for _ in range(2):
        for v in x:
            if v > 100.0:
                y, z = x * v, v
        counts.append(1)
    return y[0] + z


FUNCTIONS = [
    array_of_run_time_size,
    array_of_run_time_size_by_a_branch,
    in_a_loop_that_appends,
    element_of_a_list,
    value_of_a_dict_after_a_deletion,
    argument_that_is_not_used,
    compared_by_identity,
    handed_on_by_a_choice,
    handed_on_alone,
    index_of_an_inner_loop,
    last_above,
    array_at_first_above,
    written_after_the_loop,
    bound_before_under_a_branch,
    two_variables_in_nested_loops,
    branches_in_branches,
    read_in_later_iterations,
    read_where_it_is_bound,
    while_without_iterations,
    while_with_a_branch,
    nested_branches,
    inner_branch_alone_binds,
]
FIRST = [1.0, 60.0, 70.0, 120.0, 300.0]


def _outcome(function, x):
    """Return the result, or the variable that is unbound."""
    try:
        return function(x)
    except UnboundLocalError as error:
        return error.name or str(error).split("'")[1]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("platform", ["interpreter", "cpu"])
def test_results_and_errors_are_pythons(function, platform):
    compiled = cyxla.jit(function, platform=platform)
    for first in FIRST:
        x = np.linspace(first, first / 2, 40)
        np.testing.assert_array_equal(_outcome(compiled, x.copy()), _outcome(function, x.copy()), err_msg=f"{first}")


def test_the_table_has_both_outcomes():
    outcomes = {(f, k): _outcome(f, np.linspace(k, k / 2, 40)) for f in FUNCTIONS for k in FIRST}
    unbound = [key for key, value in outcomes.items() if isinstance(value, str)]
    assert 10 < len(unbound) < len(outcomes) - 10
