"""The graph container: what it builds, drops, counts and refuses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from gmn_pipeline import Graph, Task
from gmn_pipeline.errors import GraphError
from gmn_pipeline.graph import id_dtype
from gmn_pipeline.graph.check_kernels import first_unsorted, is_symmetric
from tests.strategies import graphs

edge_lists = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=30)


@given(edges=edge_lists, directed=st.booleans(), loops=st.booleans())
def test_edges_become_the_obvious_sets(edges: list[tuple[int, int]], directed: bool, loops: bool) -> None:
    graph = Graph.from_edges(np.array(edges).reshape(-1, 2), 7, directed=directed, keep_self_loops=loops)
    wanted = {(u, v) for u, v in edges if loops or u != v}
    if not directed:
        wanted |= {(v, u) for u, v in wanted}
    found = list(zip(graph.slot_sources.tolist(), graph.indices.tolist(), strict=True))
    assert found == sorted(wanted)
    report = graph.report
    assert report is not None
    dropped_loops = sum(u == v for u, v in edges) * (not loops)
    assert report.self_loops_dropped == dropped_loops
    assert report.duplicates_dropped == len(edges) - dropped_loops - len({e for e in edges if loops or e[0] != e[1]})
    assert report.given - report.self_loops_dropped - report.duplicates_dropped + report.reverses_added == len(found)


@given(edges=edge_lists)
def test_kept_duplicates_keep_their_count(edges: list[tuple[int, int]]) -> None:
    graph = Graph.from_edges(np.array(edges).reshape(-1, 2), 7, keep_duplicates=True, keep_self_loops=True)
    loops = sum(u == v for u, v in edges)
    assert graph.num_slots == 2 * len(edges) - loops
    assert graph.num_edges == len(edges)


def test_a_mirrored_slot_takes_its_edges_features() -> None:
    graph = Graph.from_edges([[0, 1], [2, 1], [1, 2]], edge_attr=np.array([10.0, 20.0, 30.0]))
    assert graph.edge_attr is not None
    rows = zip(graph.slot_sources.tolist(), graph.indices.tolist(), graph.edge_attr[:, 0].tolist(), strict=True)
    slots = {(u, v): a for u, v, a in rows}
    assert slots == {(0, 1): 10.0, (1, 0): 10.0, (2, 1): 20.0, (1, 2): 30.0}


@given(graph=graphs())
def test_pyg_round_trip(graph: Graph) -> None:
    if graph.graph_ptr is not None or not graph.is_simple:
        return
    back = Graph.from_pyg(graph.to_pyg(), graph.task, directed=graph.directed, keep_self_loops=True)
    for name, array in graph.arrays().items():
        np.testing.assert_array_equal(getattr(back, name), array, err_msg=name)


def test_many_pyg_graphs_become_one_union() -> None:
    one = Graph.from_edges(
        [[0, 1], [1, 2]], x=np.zeros((3, 1)), y=np.array([1]), task=Task.of("graph", "multiclass", 2)
    )
    union = Graph.from_pyg([one.to_pyg(), one.to_pyg()], Task.of("graph", "multiclass", 2))
    assert union.num_graphs == 2
    assert union.graph_ptr is not None
    assert union.graph_ptr.tolist() == [0, 3, 6]
    assert union.indices.tolist() == [1, 0, 2, 1, 4, 3, 5, 4]
    assert union.num_items == 2


def test_arrays_are_read_only() -> None:
    graph = Graph.from_edges([[0, 1]], x=np.zeros((2, 3)))
    for array in graph.arrays().values():
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_id_dtype_rule() -> None:
    assert id_dtype(2**31 - 1) == np.int32
    assert id_dtype(2**31) == np.int64  # a graph with more than 2^31 edge slots needs wider slot ids


def test_the_largest_category_is_counted_and_refused() -> None:
    graph = Graph.from_edges([[0, 1]]).replace(x=np.array([[2**31 - 1], [0]]))
    assert graph.x_categories == (2**31,)
    with pytest.raises(GraphError, match="2,147,483,648 categories in one column"):
        graph.check()


MULTI = Task.of("node", "multiclass", 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Graph.from_edges([[0, 5]], 3), "ids are 0..2"),
        (lambda: Graph.from_edges([[0, -1]]), "ids are 0.."),
        (lambda: Graph.from_edges([[0.5, 1.0]]), "integers"),
        (lambda: Graph.from_edges(np.zeros((3, 3), int)), r"\(E, 2\)"),
        (lambda: Graph.from_csr([0, 2, 1], [0]), "goes down|must run from 0"),
        (lambda: Graph.from_csr([0, 2, 1, 2], [1, 2]), "goes down"),
        (lambda: Graph.from_csr([0, 2**62, -(2**62), 2], [1, 2]), "goes down at entry 2"),
        (lambda: Graph.from_csr([0, -(2**63), 2**63 - 1, 2], [1, 2]), "goes down at entry 1"),
        (lambda: Graph.from_edges([[0, 1]], graph_ptr=np.array([0, 2**63 - 1, -2, 2])), "graph_ptr goes down"),
        (lambda: Graph.from_edges([[0, 1]], 10**12), "1,000,000,000,000 nodes with only 1 edges"),
        (lambda: Graph.from_edges([[0, 2**63 - 1]]), "names rather than numbers"),
        (lambda: Graph.from_edges(np.array([[0, 2**64 - 1]], dtype=np.uint64)), "ids are 0"),
        (lambda: Graph.from_csr([0, 1, 1], [1]), "reverse"),
        (lambda: Graph.from_csr([0, 2, 3, 4], [2, 1, 0, 0]), "not sorted"),
        (lambda: Graph.from_edges([[0, 1]], x=np.array([[1.0], [np.nan]])), "NaN"),
        (lambda: Graph.from_edges([[0, 1]], x=np.zeros((3, 1))), "one per node"),
        (lambda: Graph.from_edges([[0, 1]], 10**12, x=np.zeros((2, 1))), "one per node"),
        (lambda: Task.of("node", "multiclass", 10**9), "more than a model can tell apart"),
        (lambda: Graph.from_edges([[0, 1]], x=np.array([["a"], ["b"]])), "floats, or integers"),
        (lambda: Graph.from_edges([[0, 1]], x=np.array([[-1], [0]])), "categories -1"),
        (lambda: Graph.from_edges([[0, 1]], y=np.array([0, 3]), task=MULTI), "0..2"),
        (lambda: Graph.from_edges([[0, 1]], y=np.array([0, 1])), "without a task"),
        (lambda: Graph.from_edges([[0, 1]], y=np.array([0]), task=MULTI), "shape"),
        (lambda: Graph.from_edges([[0, 1]], splits=np.array([[7, 0]])), "1 train"),
        (lambda: Graph.from_edges([[0, 1]], graph_ptr=np.array([0, 1, 2])), "different graphs"),
        (lambda: Graph.from_edges([[0, 1]], edge_attr=np.zeros((3, 1))), "one per edge"),
        (lambda: Task.of("node", "multiclas", 3), "did you mean 'multiclass'"),  # type: ignore[arg-type]
        (lambda: Task.of("node", "regression", 1, "accuracy"), "mae"),
        (lambda: Task.of("node", "multiclass", 1), "at least 2"),
    ],
)
def test_bad_graphs_are_refused(make, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        make()


@given(st.integers(1, 7), st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=20))
def test_symmetry_is_that_of_the_transposed_matrix(n: int, pairs: list[tuple[int, int]]) -> None:
    """Loops and parallel edges included; scipy is the slow twin."""
    edges = sorted((a % n, b % n) for a, b in pairs)
    indptr = np.searchsorted([a for a, _ in edges], np.arange(n + 1))
    indices = np.array([b for _, b in edges], np.int32)
    matrix = csr_array((np.ones(len(edges), np.int64), indices, indptr), shape=(n, n)).toarray()
    assert is_symmetric(indptr, indices) == np.array_equal(matrix, matrix.T)
    assert first_unsorted(indptr, indices) == -1
    for node in range(n):
        row = slice(indptr[node], indptr[node + 1])
        if len(set(indices[row].tolist())) > 1:
            turned = indices.copy()
            turned[row] = indices[row][::-1]
            assert first_unsorted(indptr, turned) == node
