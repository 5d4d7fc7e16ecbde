"""The executor of graphs with branches, loops and asynchronous kernels.

A node runs when all its inputs have arrived. The output that a ``Switch`` does not choose is *dead*, and makes its
consumers dead without running them. Loops run in frames: ``Enter`` creates one, ``NextIteration`` advances to its next
iteration, ``Exit`` leaves it, and every node has separate state in every iteration.

The calling thread does all the bookkeeping and runs most kernels. Expensive kernels go to the thread pool if other
nodes are ready, and asynchronous kernels report later. Both put their outputs into one queue.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from cyxla.core.framework.step.context import StepContext
from cyxla.core.graph.graph import Graph, Node
from cyxla.core.runtime.invoke import Array, KernelCall, StepDeadline, annotate, required_outputs
from cyxla.errors import CancelledError, InvalidArgumentError, OpError

_LOG = logging.getLogger("cyxla.executor")
Values = list[Any]  # one for each output; None if it is dead

# Kinds of nodes. Plain nodes call their kernel; the others only move values and deadness.
(PLAIN, ASYNC, ARG, RETVAL, CONST, SWITCH, MERGE, ENTER, EXIT, NEXT, TRIGGER) = range(11)
_KINDS = {
    "_Arg": ARG, "_DeviceArg": ARG, "_Retval": RETVAL, "_DeviceRetval": RETVAL, "Const": CONST,
    "Switch": SWITCH, "RefSwitch": SWITCH, "Merge": MERGE, "RefMerge": MERGE, "_XlaMerge": MERGE,
    "Enter": ENTER, "RefEnter": ENTER, "Exit": EXIT, "RefExit": EXIT, "NextIteration": NEXT, "RefNextIteration": NEXT,
    "ControlTrigger": TRIGGER,
}  # fmt: skip
_TRANSFERS = frozenset({"_Send", "_Recv", "_HostSend", "_HostRecv"})


class _NodeItem:
    """A node with its outgoing edges."""

    __slots__ = (
        "call", "constant", "controls", "edges", "expensive", "frame", "index", "inputs", "is_constant", "kind", "node",
        "outputs", "parallel", "start", "transfers",
    )  # fmt: skip

    def __init__(self, node: Node, call: KernelCall | None) -> None:
        self.node, self.call = node, call
        self.kind = _KINDS.get(node.op, ASYNC if call is not None and call.is_async else PLAIN)
        self.inputs, self.outputs = len(node.inputs), len(node.outputs)
        self.edges: list[tuple[int, _NodeItem, int]] = []  # output index, consumer, input index
        self.controls: list[_NodeItem] = []
        self.index = node.attr("index") if self.kind in (ARG, RETVAL) else 0
        self.frame = node.attr("frame_name") if self.kind == ENTER else ""
        self.is_constant = self.kind == ENTER and bool(node.attr("is_constant"))
        self.parallel = node.attr("parallel_iterations") if self.kind == ENTER else 0
        self.transfers = node.op in _TRANSFERS  # these run even if dead, to transfer the deadness
        self.expensive = call is not None and call.is_expensive
        self.constant = call.constant if self.kind == CONST and call is not None else None
        waits = len(node.control_inputs)
        # The pending count of a merge: 2 for each control input, plus 1 until the first live input arrives.
        self.start = 1 + 2 * waits if self.kind == MERGE else self.inputs + waits


class FrameExecutor:
    """Executor of any graph, which may be partitioned over several devices.

    Parameters
    ----------
    parts : sequence of (Graph, dict of Node to OpKernel)
        Graphs with ``_Arg`` and ``_Retval`` nodes for arguments and results, and the kernels of their other nodes.

    Raises
    ------
    InvalidArgumentError
        A node has inputs from different loops.
    """

    def __init__(self, parts: Sequence[tuple[Graph, Mapping[Node, Any]]]) -> None:
        self.parts = [_Part(graph, kernels) for graph, kernels in parts]
        retvals = [item for part in self.parts for item in part.items if item.kind == RETVAL]
        self._sources = {item.index: item.node.inputs[0] for item in retvals}

    def run(self, step: StepContext, args: Sequence[Array]) -> list[Any]:
        """Run the graphs, and return the values of the ``_Retval`` nodes in order.

        Raises
        ------
        OpError
            A kernel failed; the error names the node.
        InvalidArgumentError
            A result is dead.
        """
        loop = _EventLoop(step)
        results: dict[int, Any] = {}
        for part in self.parts:
            _Run(part, args, loop.ready, results)
        with np.errstate(all="ignore"):
            loop.run()
        for index, source in self._sources.items():
            if results.get(index) is None:
                raise InvalidArgumentError(
                    f"the result '{source.name}' has no value: it is dead, on a branch that was not taken",
                    node=source.node.name,
                    op=source.node.op,
                )
        return [results[index] for index in sorted(self._sources)]


class _Part:
    """The static structure of one graph."""

    def __init__(self, graph: Graph, kernels: Mapping[Node, Any]) -> None:
        required = required_outputs(graph.nodes.values())
        calls = {n: KernelCall(n, kernel, required=required.get(n, ())) for n, kernel in kernels.items()}
        items = {n: _NodeItem(n, calls.get(n)) for n in graph.nodes.values()}
        for node, item in items.items():
            for k, tensor in enumerate(node.inputs):
                items[tensor.node].edges.append((tensor.index, item, k))
            for control in node.control_inputs:
                items[control].controls.append(item)
        self.items = list(items.values())
        self.roots = [item for item in self.items if not item.inputs and not item.node.control_inputs]
        self.enters: dict[str, int] = {}
        for item in self.items:
            if item.kind == ENTER:
                self.enters[item.frame] = self.enters.get(item.frame, 0) + 1
        self.exits = _exits_by_frame(self.items, self.roots)


def _exits_by_frame(items: Sequence[_NodeItem], roots: Sequence[_NodeItem]) -> dict[str, list[_NodeItem]]:
    """Return the exits of every frame, after a check that no node has inputs from different frames."""
    frames_of: dict[_NodeItem, tuple[str, ...]] = dict.fromkeys(roots, ())
    stack = list(roots)
    exits: dict[str, list[_NodeItem]] = {}
    while stack:
        item = stack.pop()
        frames = frames_of[item]
        if item.kind == ENTER:
            frames = (*frames, item.frame)
        elif item.kind == EXIT:
            exits.setdefault(frames[-1] if frames else "", []).append(item)
            frames = frames[:-1]
        for user in [*(e[1] for e in item.edges), *item.controls]:
            if user not in frames_of:
                frames_of[user] = frames
                stack.append(user)
            elif frames_of[user] != frames:
                raise InvalidArgumentError(
                    f"node '{user.node.name}' ({user.node.op}) has inputs from different frames: "
                    f"{'/'.join(frames_of[user]) or 'none'} and {'/'.join(frames) or 'none'}",
                    node=user.node.name,
                    op=user.node.op,
                    hint="values enter a loop through Enter and leave it through Exit",
                )
    for item in exits.get("", ()):
        raise InvalidArgumentError(
            f"node '{item.node.name}' ({item.node.op}) leaves a loop, but is not in one", node=item.node.name
        )
    for item in items:
        if item.kind == RETVAL and frames_of.get(item):
            raise InvalidArgumentError(
                f"'{item.node.inputs[0].name}' is inside the loop '{frames_of[item][-1]}' and cannot be fetched",
                hint="fetch the output of an Exit",
            )
    return exits


class _Iteration:
    """The state of the nodes in one iteration of a frame."""

    __slots__ = ("frames", "ops", "state")

    def __init__(self) -> None:
        self.state: dict[_NodeItem, list[Any]] = {}  # [pending count, number of dead inputs, inputs]
        self.ops = 0  # number of nodes that are ready or running
        self.frames: dict[str, _Frame] = {}  # running loops that were entered from this iteration


class _Frame:
    """One execution of a loop; the outermost frame is the graph itself."""

    __slots__ = (
        "count", "delayed", "invariants", "iterations", "live_exits", "name", "parallel", "parent", "parent_iteration",
        "running", "waits",
    )  # fmt: skip

    def __init__(self, name: str, parent: _Frame | None, iteration: int, parallel: int, waits: int) -> None:
        self.name, self.parent, self.parent_iteration = name, parent, iteration
        self.parallel, self.waits = max(parallel, 1), waits  # `waits`: Enter nodes that have not run yet
        self.iterations = {0: _Iteration()}
        self.count, self.running = 0, 1  # number of the newest iteration; number of running iterations
        self.delayed: list[tuple[_NodeItem, Values]] = []  # values for an iteration that cannot start yet
        self.invariants: list[tuple[_NodeItem, Values, bool]] = []
        self.live_exits: set[_NodeItem] = set()


_Ready = tuple["_Run", _NodeItem, _Frame, int, list[Any], bool]


class _Run:
    """The state of one graph in one step."""

    def __init__(self, part: _Part, args: Sequence[Array], ready: deque[_Ready], results: dict[int, Any]) -> None:
        self.part, self.args, self.ready, self.results = part, args, ready, results
        root = _Frame("", None, 0, 1, 0)
        root.iterations[0].ops = len(part.roots)
        ready.extend((self, item, root, 0, [], False) for item in part.roots)

    # values arrive --------------------------------------------------------------------------------------------
    def finish(self, item: _NodeItem, outputs: Values | None, frame: _Frame, number: int) -> None:
        """Propagate the outputs of a node, None if it is dead, and close iterations and frames that ended with it."""
        kind = item.kind
        if kind == ENTER:
            self._enter(item, outputs, frame, number)
        elif kind == EXIT:
            if outputs is not None and frame.parent is not None:
                frame.live_exits.add(item)
                self.activate(item, outputs, frame.parent, frame.parent_iteration)
        elif kind == NEXT:
            if outputs is not None:
                self._next(item, outputs, frame, number)
        else:
            self.activate(item, outputs, frame, number)
        iteration = frame.iterations[number]
        iteration.ops -= 1
        if not iteration.ops and frame.parent is not None:
            self._close(frame, number)

    def activate(self, item: _NodeItem, outputs: Values | None, frame: _Frame, number: int) -> None:
        """Deliver outputs to consumers in one iteration; those with all inputs become ready."""
        iteration = frame.iterations[number]
        for index, user, input_index in item.edges:
            self._deliver(user, input_index, None if outputs is None else outputs[index], frame, number, iteration)
        for user in item.controls:
            self._deliver_control(user, outputs is None, frame, number, iteration)

    def _state(self, item: _NodeItem, iteration: _Iteration) -> list[Any]:
        state = iteration.state.get(item)
        if state is None:
            state = iteration.state[item] = [item.start, 0, [None] * item.inputs]
        return state

    def _deliver(
        self, item: _NodeItem, input_index: int, value: Any, frame: _Frame, number: int, it: _Iteration
    ) -> None:
        state = self._state(item, it)
        if item.kind != MERGE:
            state[0] -= 1
            if value is None:
                state[1] += 1
            else:
                state[2][input_index] = value
            if not state[0]:
                self._make_ready(item, state, frame, number, it)
        elif value is None:
            state[1] += 1
            if state[0] == 1 and state[1] == item.inputs:
                self._make_ready(item, state, frame, number, it)
        elif state[0] & 1:  # the first live input; later ones are ignored
            state[0] -= 1
            state[2][input_index] = value
            if not state[0]:
                self._make_ready(item, state, frame, number, it)

    def _deliver_control(self, item: _NodeItem, dead: bool, frame: _Frame, number: int, iteration: _Iteration) -> None:
        state = self._state(item, iteration)
        if item.kind != MERGE:
            state[0] -= 1
            state[1] += dead
            ready = not state[0]
        else:
            state[0] -= 2
            ready = state[0] == 0 or (state[0] == 1 and state[1] == item.inputs)
        if ready:
            self._make_ready(item, state, frame, number, iteration)

    def _make_ready(self, item: _NodeItem, state: list[Any], frame: _Frame, number: int, iteration: _Iteration) -> None:
        if item.kind == MERGE:
            dead = state[1] == item.inputs
            inputs, state[0] = state[2], -1 << 30  # never ready again in this iteration
            state[2] = [None] * item.inputs
        else:
            dead = state[1] > 0 and item.kind != TRIGGER
            inputs = state[2]
            del iteration.state[item]
        iteration.ops += 1
        self.ready.append((self, item, frame, number, inputs, dead))

    # frames ---------------------------------------------------------------------------------------------------
    def _enter(self, item: _NodeItem, outputs: Values | None, frame: _Frame, number: int) -> None:
        child = self._child_frame(item, frame, number)
        if item.is_constant:
            child.invariants.append((item, outputs or [], outputs is None))
            for k in sorted(child.iterations):
                self.activate(item, outputs, child, k)
        else:
            self.activate(item, outputs, child, 0)
        child.waits -= 1
        is_first = child.iterations.get(0)
        if is_first is not None and not is_first.ops:
            self._close(child, 0)

    def _child_frame(self, item: _NodeItem, frame: _Frame, number: int) -> _Frame:
        children = frame.iterations[number].frames
        child = children.get(item.frame)
        if child is None:
            child = _Frame(item.frame, frame, number, item.parallel, self.part.enters[item.frame])
            children[item.frame] = child
        return child

    def _next(self, item: _NodeItem, outputs: Values, frame: _Frame, number: int) -> None:
        if number == frame.count:
            if frame.running == frame.parallel:
                frame.delayed.append((item, outputs))
                return
            self._increment(frame)
        self.activate(item, outputs, frame, number + 1)

    def _increment(self, frame: _Frame) -> None:
        frame.count += 1
        frame.running += 1
        frame.iterations[frame.count] = _Iteration()
        delayed, frame.delayed = frame.delayed, []
        for item, outputs in delayed:
            self.activate(item, outputs, frame, frame.count)
        for item, outputs, dead in frame.invariants:
            self.activate(item, None if dead else outputs, frame, frame.count)

    def _close(self, frame: _Frame, number: int) -> None:
        """Drop iterations and frames that have ended, innermost first."""
        while frame.parent is not None:
            while number in frame.iterations and self._has_ended(frame, number):
                del frame.iterations[number]
                frame.running -= 1
                number += 1
                if frame.delayed:
                    self._increment(frame)
            if frame.waits or frame.running:
                return
            parent, above = frame.parent, frame.parent_iteration
            for item in self.part.exits.get(frame.name, ()):
                if item not in frame.live_exits:
                    self.activate(item, None, parent, above)
            del parent.iterations[above].frames[frame.name]
            if parent.iterations[above].ops:
                return
            frame, number = parent, above

    def _has_ended(self, frame: _Frame, number: int) -> bool:
        iteration = frame.iterations[number]
        if iteration.ops or iteration.frames:
            return False
        return not frame.waits if number == 0 else number - 1 not in frame.iterations

    # nodes run ------------------------------------------------------------------------------------------------
    def move(self, item: _NodeItem, inputs: list[Any]) -> Values:
        """Return the outputs of a node that only moves values."""
        kind = item.kind
        if kind in (ENTER, EXIT, NEXT):
            return inputs
        if kind == MERGE:
            index = next(k for k, value in enumerate(inputs) if value is not None)
            return [inputs[index], np.array(index, np.int32)][: item.outputs]
        if kind == SWITCH:
            return [None, inputs[0]] if _scalar(inputs[1]) else [inputs[0], None]
        if kind == ARG:
            if item.index >= len(self.args):
                raise InvalidArgumentError(f"argument {item.index} is missing: {len(self.args)} were given")
            return [self.args[item.index]]
        if kind == RETVAL:
            self.results[item.index] = inputs[0]
            return []
        return [item.constant] if kind == CONST else []


def _scalar(value: Any) -> Any:
    """Return the value of a switch's predicate."""
    if value.ndim:
        raise InvalidArgumentError(f"the predicate of a Switch must be a scalar, but its shape is {list(value.shape)}")
    return value[()]


class _EventLoop:
    """The event loop of a step: a queue of ready nodes, and a queue of the outputs of other threads."""

    def __init__(self, step: StepContext) -> None:
        self.step = step
        self.ready: deque[_Ready] = deque()
        self.done: SimpleQueue[tuple[_Ready, Values | None, BaseException | None]] = SimpleQueue()
        self.outstanding = 0
        self.error: OpError | None = None
        self.deadline = StepDeadline(step)
        self.stats = step.stats_collector

    def run(self) -> None:
        ready = self.ready
        while ready or self.outstanding:
            if ready:
                self._process(ready.popleft())
                if self.outstanding and not self.done.empty():
                    self._collect(0.0)
            else:
                self._collect(self.deadline.remaining())
        if self.error is not None:
            raise self.error

    def _process(self, entry: _Ready) -> None:
        graph_run, item, frame, number, inputs, dead = entry
        if dead and not item.transfers:
            graph_run.finish(item, None, frame, number)
            return
        try:
            self.deadline.check()
            if item.call is None or item.kind not in (PLAIN, ASYNC):
                if item.call is not None and item.call.derefs:
                    inputs = item.call.dereference(inputs)
                outputs: Values | None = graph_run.move(item, inputs)
            elif item.kind == ASYNC:
                self._start(entry)
                return
            elif item.expensive and self.ready and not self.step.run_all_kernels_inline:
                self._schedule(entry)
                return
            else:
                outputs = item.call(self.step, inputs, ((frame.name, number), dead))
        except Exception as error:
            self.fail(error, item.node)
            return
        graph_run.finish(item, outputs, frame, number)

    def _start(self, entry: _Ready) -> None:
        """Start an asynchronous kernel."""
        _, item, frame, number, inputs, dead = entry
        assert item.call is not None
        self.outstanding += 1
        report = self.done.put
        item.call.start(
            self.step, inputs, ((frame.name, number), dead), lambda outputs, error: report((entry, outputs, error))
        )

    def _schedule(self, entry: _Ready) -> None:
        """Run a kernel on another thread."""
        _, item, frame, number, inputs, dead = entry
        call = item.call
        assert call is not None
        self.outstanding += 1

        def work() -> None:
            try:
                with np.errstate(all="ignore"):
                    outputs = call(self.step, inputs, ((frame.name, number), dead), scheduled=True)
            except BaseException as error:
                self.done.put((entry, None, error))
            else:
                self.done.put((entry, outputs, None))

        self.step.runner(work)

    def _collect(self, timeout: float | None) -> None:
        """Process the outputs of another thread, after waiting for them until the deadline."""
        try:
            entry, outputs, error = self.done.get(timeout is None or timeout > 0, timeout)
        except Empty:
            if timeout:
                self._expire()
            return
        self.outstanding -= 1
        graph_run, item, frame, number, _, _ = entry
        if error is not None:
            self.fail(error, item.node)
        elif self.error is None:
            graph_run.finish(item, outputs, frame, number)

    def _expire(self) -> None:
        if self.deadline.failed:
            _LOG.warning("%d kernels still run after their step has failed; they are abandoned", self.outstanding)
            self.outstanding = 0
            return
        try:
            self.deadline.check()
        except OpError as error:
            self.fail(error, None)

    def fail(self, error: BaseException, node: Node | None) -> None:
        """Record the first error that is not a cancellation, stop scheduling, and wake waiting kernels."""
        annotated = annotate(error, node)
        self.ready.clear()
        first = self.error is None
        if first or (isinstance(self.error, CancelledError) and not isinstance(annotated, CancelledError)):
            self.error = annotated
        if first:
            self.deadline.fail()
            if self.step.rendezvous is not None:
                self.step.rendezvous.start_abort(annotated)
            self.step.cancellation_manager.start_cancel()
