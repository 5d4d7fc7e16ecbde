"""Contraction keeps graphs without cycles."""

from hypothesis import given
from hypothesis import strategies as st

from cyxla.autojit.analysis.graph_cycles import GraphCycles

PAIRS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=40)


def reaches(edges, a, b):
    seen, stack = set(), [a]
    while stack:
        top = stack.pop()
        new = {t for s, t in edges if s == top} - seen
        seen |= new
        stack += new
    return b in seen


@given(PAIRS)
def test_edges_that_close_cycles_are_refused(pairs):
    cycles, edges = GraphCycles(10), set()
    for a, b in pairs:
        allowed = a != b and not reaches(edges, b, a)
        assert cycles.insert_edge(a, b) == allowed
        if allowed:
            edges.add((a, b))
    assert all(cycles.rank[a] < cycles.rank[b] for a, b in edges)


@given(PAIRS, PAIRS)
def test_contraction(pairs, wanted):
    """An edge is contracted exactly if no other path leads from one end to the other."""
    cycles, edges = GraphCycles(10), set()
    for a, b in pairs:
        if cycles.insert_edge(a, b):
            edges.add((a, b))
    for a, b in wanted:
        if (a, b) not in edges:
            continue
        kept = cycles.contract_edge(a, b)
        assert (kept is None) == reaches(edges - {(a, b)}, a, b)
        if kept is not None:
            gone = a + b - kept
            edges = {(kept if s == gone else s, kept if t == gone else t) for s, t in edges} - {(kept, kept)}
        assert {(s, t) for s in range(10) for t in cycles.successors[s]} == edges
        assert all(cycles.rank[s] < cycles.rank[t] for s, t in edges)


def test_new_nodes_come_last():
    cycles = GraphCycles(2)
    assert cycles.new_node() == 2
    assert cycles.insert_edge(2, 0)
    assert cycles.is_reachable(2, 0)
    assert not cycles.is_reachable(0, 2)
