"""Restores equal layers in a joint graph that was captured with few of them.

The short graph has the first two and the last five of the equal layers (``repeats``). Each layer is
one period of the forward pass and one of the backward pass. Neighbouring periods differ only in
their position: a period reads values of the period before, constants of its own layer, and, in the
backward pass, what its own layer computed in the forward pass. So the second period determines, by
relative positions, what all others read. Everything outside of the periods stays.

All this is checked on the periods of the short graph. If a check fails, the whole model has to be
captured.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import fx

from ckplan.torch.estimation.layer_folding import FRONT, KEPT, FoldedLayers
from ckplan.torch.estimation.periods import Run, runs
from ckplan.torch.graph import CONSTANT, JointGraph, Operation, Value

_TEMPLATE = 1
"""The period from which the reads of the others are derived."""

_LEAST = 4
"""The minimum number of periods of a pass. A backward pass may have one less than there are layers:
if layers share an input, the sum of its gradients begins in the second layer."""


class _Irregular(Exception):
    """The short graph is not regular enough to be expanded."""


def expand_layers(
    short: JointGraph, nodes: Sequence[fx.Node], repeats: Sequence[FoldedLayers]
) -> JointGraph | None:
    """Returns the graph with all layers; None if the layers are not regular enough.

    ``nodes`` are all nodes of the FX graph that ``short`` was captured from. Corresponding
    operations of different layers share a node, so no modules can be built from the graph.
    """
    try:
        return _Writer(_FoldedStep(short, nodes, repeats)).write()
    except _Irregular:
        return None


@dataclass(frozen=True)
class _Layers:
    """The periods of equal layers in the short graph."""

    forward: Run
    backward: Run
    left_out: int
    inputs: int
    """Constants of one layer."""
    first_input: int
    """The first constant of the second layer."""


@dataclass(frozen=True)
class _Gap:
    """Missing periods in a sequence, before the position ``at``."""

    at: int
    period: int
    count: int
    names: dict[str, int]
    """How many numbered names each period uses, by their prefix."""


class _FoldedStep:
    """The short graph, and its analysis."""

    def __init__(
        self, graph: JointGraph, nodes: Sequence[fx.Node], repeats: Sequence[FoldedLayers]
    ):
        self.graph = graph
        self.writer = {
            value: (operation.id, place)
            for operation in graph.operations
            if operation.id != graph.boundary
            for place, value in enumerate(operation.writes)
        }
        self.num_inputs = min(self.writer, default=len(graph.values))
        self._inputs = {repeat.inputs for repeat in repeats}
        self._check_order()
        self._forms = [_shared_properties(graph, operation) for operation in graph.operations]
        self.layers = self._find(repeats)
        gaps = [self._gaps(layers, nodes) for layers in self.layers]
        self.gaps = sorted((gap for pair in gaps for gap in pair), key=lambda gap: gap.at)
        self.input_gaps = [
            _Gap(
                layers.first_input + layers.inputs,
                layers.inputs,
                layers.left_out,
                {"primals": layers.inputs},
            )
            for layers in self.layers
        ]

    def place(self, value: int) -> int:
        """Returns the position of the operation that makes a value; -1 for an input."""
        return self.writer[value][0] if value in self.writer else -1

    def _check_order(self) -> None:
        """Requires values in the order of their operations, after the inputs."""
        graph = self.graph
        made = [v for o in graph.operations if o.id != graph.boundary for v in o.writes]
        _require(made == list(range(self.num_inputs, self.num_inputs + len(made))))
        inputs = sum(node.op == "placeholder" for node in graph.roots)
        _require(inputs == self.num_inputs and not graph.boundary_copies)

    def _find(self, repeats: Sequence[FoldedLayers]) -> list[_Layers]:
        graph = self.graph
        ends = len(graph.operations)
        self._forward: list[Run] = []
        forward = self._runs(0, graph.boundary, len(repeats))
        self._forward = forward
        backward = self._runs(graph.boundary + 1, ends, len(repeats))
        backward.reverse()
        _require(len(forward) == len(backward) == len(repeats))
        rows = zip(forward, backward, repeats)
        return [self._layers(one, other, repeat) for one, other, repeat in rows]

    def _runs(self, begin: int, end: int, count: int) -> list[Run]:
        """Returns the longest runs, in order. Shorter ones are parts of layers, such as experts."""
        found = runs(self._forms, self._corresponds, begin, end)
        found = [run for run in found if _LEAST <= run.count <= KEPT + 1]
        longest = sorted(found, key=lambda run: (run.start - run.end, run.start))[:count]
        return sorted(longest, key=lambda run: run.start)

    def _corresponds(self, position: int, period: int) -> bool:
        """Returns whether an operation corresponds to the one a period later."""
        operations = self.graph.operations
        pairs = zip(operations[position].reads, operations[position + period].reads)
        return all(self._values_correspond(one, other, position, period) for one, other in pairs)

    def _values_correspond(self, one: int, other: int, position: int, period: int) -> bool:
        if one == other:
            return True
        is_backward = position > self.graph.boundary
        if one < self.num_inputs or other < self.num_inputs:
            distance = one - other if is_backward else other - one
            same = self.graph.values[one].bytes == self.graph.values[other].bytes
            return max(one, other) < self.num_inputs and same and distance in self._inputs
        if one not in self.writer or other not in self.writer:
            return False
        (at, place), (later, its_place) = self.writer[one], self.writer[other]
        if place != its_place:
            return False
        if is_backward and at < self.graph.boundary:
            return at - later in {run.period for run in self._forward}
        return later - at == period

    def _layers(self, forward: Run, backward: Run, repeat: FoldedLayers) -> _Layers:
        layer_constants = []
        for number in (_TEMPLATE, _TEMPLATE + 1):
            read = set()
            for position in range(forward.position(number), forward.position(number + 1)):
                operation = self.graph.operations[position]
                before = self.graph.operations[position - forward.period]
                pairs = zip(operation.reads, before.reads)
                read |= {a for a, b in pairs if a != b and a < self.num_inputs}
            layer_constants.append(sorted(read))
        first = layer_constants[0][0] if layer_constants[0] else 0
        second = first + repeat.inputs
        _require(layer_constants[0] == list(range(first, second)))
        _require(layer_constants[1] == list(range(second, second + repeat.inputs)))
        return _Layers(forward, backward, repeat.left_out, repeat.inputs, first)

    def _gaps(self, layers: _Layers, nodes: Sequence[fx.Node]) -> list[_Gap]:
        place = {node: position for position, node in enumerate(nodes)}
        return [
            _Gap(run.position(FRONT), run.period, layers.left_out, self._names(run, nodes, place))
            for run in (layers.forward, layers.backward)
        ]

    def _names(
        self, run: Run, nodes: Sequence[fx.Node], place: dict[fx.Node, int]
    ) -> dict[str, int]:
        """Returns how many names one period uses, from the numbers in the nodes' names."""
        operations = self.graph.operations
        begin = place[operations[run.position(_TEMPLATE)].call]
        end = place[operations[run.position(_TEMPLATE + 1)].call]
        taken: dict[str, int] = {}
        for node, later in zip(nodes[begin:end], nodes[end : 2 * end - begin]):
            (base, number), (same, next_number) = _split_name(node.name), _split_name(later.name)
            count = next_number - number
            _require(base == same and taken.setdefault(base, count) == count)
        return taken


class _Writer:
    """Writes the long graph."""

    def __init__(self, short: _FoldedStep):
        self._short = short
        self._old = short.graph
        self._new = JointGraph()
        self._made: dict[tuple[int, int], int] = {}
        self._positions: list[int] = []
        self._regions = {run.start: (layers, run) for layers, run in self._runs()}

    def _runs(self) -> Iterator[tuple[_Layers, Run]]:
        for layers in self._short.layers:
            yield layers, layers.forward
            yield layers, layers.backward

    def write(self) -> JointGraph:
        """Returns the graph."""
        self._inputs()
        operations, position = self._old.operations, 0
        boundary = None
        while position < len(operations):
            if position in self._regions:
                layers, run = self._regions[position]
                self._periods(layers, run)
                position = run.end
                continue
            operation = operations[position]
            if operation.node is None:
                boundary = self._add(operation, operation.module, operation.name, [], [])
            else:
                reads = [self._value_outside(value) for value in operation.reads]
                offsets = self._name_offsets(position)
                name = self._name(operation, _numbered(operation.name, offsets))
                self._copy(operation, reads, name, operation.module)
            position += 1
        _require(boundary is not None)
        assert boundary is not None
        self._boundary(boundary)
        self._results()
        self._sizes()
        return self._new

    # Inputs: constants, and gradients from the caller.

    def _inputs(self) -> None:
        values = self._old.values
        for number in range(self._short.num_inputs):
            for gap in self._short.input_gaps:
                for missing in range(gap.count if gap.at == number else 0):
                    for old in range(gap.at - gap.period, gap.at):
                        self._input(values[old], (missing + 1) * gap.period)
            self._input(values[number], 0)

    def _input(self, old: Value, later: int) -> None:
        base, _ = _split_name(old.name)
        shift = later + sum(
            gap.count * gap.period for gap in self._short.input_gaps if gap.at <= old.id
        )
        name = _numbered(old.name, {base: shift if base == "primals" else 0})
        self._new.add_value(name, old.bytes, old.kind)

    def _input_at(self, old: int) -> int:
        gaps = self._short.input_gaps
        return old + sum(gap.count * gap.period for gap in gaps if gap.at <= old)

    # Operations.

    def _name_offsets(self, position: int) -> dict[str, int]:
        """Returns how much higher the numbers in names are than in the short graph, by prefix."""
        taken: Counter[str] = Counter()
        for gap in self._short.gaps:
            if gap.at <= position:
                taken.update({base: gap.count * count for base, count in gap.names.items()})
        return dict(taken)

    def _new_position(self, position: int) -> int:
        """Returns the new position of an operation outside of the repeated periods."""
        gaps = self._short.gaps
        return position + sum(gap.count * gap.period for gap in gaps if gap.at <= position)

    def _value_outside(self, value: int) -> int:
        if value < self._short.num_inputs:
            return self._input_at(value)
        _require(value in self._short.writer)
        position, place = self._short.writer[value]
        return self._value_at(self._new_position(position), place)

    def _value_at(self, position: int, place: int) -> int:
        _require((position, place) in self._made)
        return self._made[position, place]

    def _periods(self, layers: _Layers, run: Run) -> None:
        offsets = self._name_offsets(run.start)
        gap = next(gap for gap in self._short.gaps if gap.at == run.position(FRONT))
        for number in range(run.count + layers.left_out):
            later = number - _TEMPLATE
            names = {base: offsets.get(base, 0) + later * n for base, n in gap.names.items()}
            for role in range(run.period):
                at = run.position(_TEMPLATE) + role
                operation = self._old.operations[at]
                if number < _TEMPLATE:
                    name = _numbered(self._old.operations[run.start + role].name, offsets)
                else:
                    name = _numbered(operation.name, names)
                reads = self._reads(layers, run, at, later)
                module = self._module(layers, run, role, number)
                self._copy(operation, reads, self._name(operation, name), module)

    def _reads(self, layers: _Layers, run: Run, at: int, later: int) -> list[int]:
        """Returns what an operation reads that is ``later`` periods after the template."""
        short = self._short
        operations = self._old.operations
        now = len(self._new.operations)
        is_backward = at > self._old.boundary
        reads = []
        for value, next_value in zip(operations[at].reads, operations[at + run.period].reads):
            if value == next_value:
                reads.append(self._value_outside(value))
            elif value < short.num_inputs and not is_backward:
                reads.append(self._input_at(value) + later * layers.inputs)
            elif value < short.num_inputs:
                # The backward pass begins with the last layer, whose place is known.
                last = self._input_at(value + layers.inputs)
                reads.append(last - (later + 1) * layers.inputs)
            else:
                position, place = short.writer[value]
                found = now - (at - position)
                if is_backward and position < self._old.boundary:
                    last = self._new_position(position + layers.forward.period)
                    found = last - (later + 1) * layers.forward.period
                reads.append(self._value_at(found, place))
        return reads

    def _module(self, layers: _Layers, run: Run, role: int, number: int) -> str:
        """Returns the module of an operation, by interpolating between the first and the last."""
        operations = self._old.operations
        first = operations[run.start + role].module.split(".")
        last = operations[run.position(run.count - 1) + role].module.split(".")
        _require(len(first) == len(last))
        steps = run.count + layers.left_out - 1
        parts = []
        for one, other in zip(first, last):
            if one != other:
                _require(one.isdigit() and other.isdigit())
                step, rest = divmod(int(other) - int(one), steps)
                _require(rest == 0)
                one = str(int(one) + number * step)
            parts.append(one)
        return ".".join(parts)

    @staticmethod
    def _name(operation: Operation, name: str) -> str | None:
        return None if name == operation.name else name

    def _copy(self, old: Operation, reads: list[int], name: str | None, module: str) -> None:
        position = len(self._new.operations)
        made = name or old.name
        writes = []
        for place, value in enumerate(old.writes):
            row = self._old.values[value]
            _require(row.alias_of is None and row.name.startswith(old.name))
            rest = row.name[len(old.name) :]
            writes.append(self._new.add_value(made + rest, row.bytes, row.kind))
            self._made[position, place] = writes[-1]
        self._add(old, module, name, reads, writes)

    def _add(
        self, old: Operation, module: str, name: str | None, reads: list[int], writes: list[int]
    ) -> Operation:
        position = len(self._new.operations)
        made = dataclasses.replace(
            old, id=position, reads=reads, writes=writes, module=module, named=name
        )
        self._new.operations.append(made)
        return made

    # The boundary, results and sums.

    def _boundary(self, boundary: Operation) -> None:
        """Completes the boundary, which must not read values of the first layers."""
        old, short = self._old.operations[self._old.boundary], self._short
        for layers in short.layers:
            near = range(layers.forward.start, layers.forward.position(FRONT))
            read = {short.writer[value][0] for value in old.reads if value in short.writer}
            _require(not read.intersection(near))
        boundary.named = None
        boundary.reads = [self._value_outside(value) for value in old.reads]
        for value in old.writes:
            row = self._old.values[value]
            if row.alias_of is None:
                boundary.writes.append(self._input_at(value))
                continue
            target = self._value_outside(row.alias_of)
            was, name = self._old.values[row.alias_of].name, self._new.values[target].name
            boundary.writes.append(
                self._new.add_value(name + row.name[len(was) :], 0, alias_of=target)
            )
        self._new.boundary = boundary.id

    def _results(self) -> None:
        old, new = self._old, self._new
        was, now = old.operations[old.boundary], new.operations[new.boundary]
        boundary = dict(zip(was.writes, now.writes))
        gradients = [value for value in old.results if value in self._short.writer]
        head = [value for value in old.results if value not in self._short.writer]
        _require(old.results == head + gradients and all(value in boundary for value in head))
        counted = set(gradients)
        found = (value for was, value in self._gradients() if was in counted)
        new.results = [boundary[value] for value in head] + list(dict.fromkeys(found))

    def _gradients(self) -> Iterator[tuple[int, int]]:
        """Yields (old value, new value) for each gradient, in the order of the inputs."""
        old = self._old
        known: dict[int, int] = {}
        for position, node in enumerate(old.backward_outputs):
            if isinstance(node, fx.Node):
                known[position] = old.value_of[old.roots[node]]
        for position in range(len(old.backward_outputs)):
            for layers in self._short.layers:
                if position == layers.first_input + layers.inputs:
                    for later in range(1, layers.left_out + 1):
                        for own in range(layers.first_input, position):
                            if own in known:
                                yield known[own], self._gradient(layers, known, own, later)
            if position in known:
                yield known[position], self._kept_gradient(known, position)

    def _kept_gradient(self, known: dict[int, int], position: int) -> int:
        """Returns the gradient of a constant that the short graph has."""
        for layers in self._short.layers:
            later, place = divmod(position - layers.first_input, layers.inputs or 1)
            own, run = layers.first_input + place, layers.backward
            if later > 0 and own in known:
                at = self._short.place(known[own]) - later * run.period
                if run.contains(at) and self._short.place(known[position]) == at:
                    return self._gradient(layers, known, own, later + layers.left_out)
        return self._value_outside(known[position])

    def _gradient(self, layers: _Layers, known: dict[int, int], own: int, later: int) -> int:
        """Returns the gradient of a constant of the layer ``later`` layers after the template."""
        value, next_value = known[own], known.get(own + layers.inputs)
        if next_value == value:
            return self._value_outside(value)
        _require(value in self._short.writer and next_value in self._short.writer)
        assert next_value is not None
        at, place = self._short.writer[value]
        next_at, next_place = self._short.writer[next_value]
        run = layers.backward
        _require(at - next_at == run.period and place == next_place)
        # The gradient of the first layer comes last, at a known position.
        _require(self._short.place(known.get(own - layers.inputs, -1)) == at + run.period)
        return self._value_at(self._new_position(at + run.period) - (later + 1) * run.period, place)

    def _sizes(self) -> None:
        old, new = self._old, self._new
        new.parameter_bytes, new.trained_bytes = old.parameter_bytes, old.trained_bytes
        new.trained, new.optimized = list(old.trained), list(old.optimized)
        for layers in self._short.layers:
            for position in range(layers.first_input, layers.first_input + layers.inputs):
                value, count = old.values[position], layers.left_out
                _require(value.kind == CONSTANT)
                new.parameter_bytes += count * value.bytes * (position in old.parameters)
                node = old.backward_outputs[position]
                if position in old.parameters and isinstance(node, fx.Node):
                    gradient = old.values[old.value_of[old.roots[node]]]
                    elements, each = node.meta["val"].numel(), node.meta["val"].element_size()
                    new.trained_bytes += count * gradient.bytes
                    new.trained = _add_rows(new.trained, elements, each, count)
                    within = min(elements, gradient.bytes // each)
                    new.optimized = _add_rows(new.optimized, within, each, count)


def _add_rows(
    rows: list[tuple[int, int, int]], elements: int, each: int, count: int
) -> list[tuple[int, int, int]]:
    """Returns the rows with ``count`` more tensors of a size."""
    counted = Counter({(row[0], row[1]): row[2] for row in rows})
    counted[elements, each] += count
    return [(*size, n) for size, n in sorted(counted.items()) if size[0]]


def _shared_properties(graph: JointGraph, operation: Operation) -> object:
    """Returns the properties of an operation that must be equal in all periods."""
    rows = [graph.values[value] for value in operation.writes]
    if operation.node is None or any(row.alias_of is not None for row in rows):
        return operation.id
    writes = tuple((row.bytes, row.kind) for row in rows)
    facts = (operation.is_backward, operation.repeats, operation.is_random)
    base, _ = _split_name(operation.name)
    return operation.node.target, len(operation.reads), writes, base, facts


def _split_name(name: str) -> tuple[str, int]:
    """Splits a name of FX: ``mm_12`` into ``mm`` and 12, and ``mm`` into ``mm`` and 0."""
    found = re.fullmatch(r"(.+)_(\d+)", name)
    return (found[1], int(found[2])) if found else (name, 0)


def _numbered(name: str, more: dict[str, int]) -> str:
    """Returns the name with its number raised by that of its prefix in ``more``."""
    base, number = _split_name(name)
    number += more.get(base, 0)
    return f"{base}_{number}" if number else base


def _require(holds: bool) -> None:
    if not holds:
        raise _Irregular
