"""Prints the training step of an annotated model, reading only the model's markers.

    ckplan model.onnx --budget 60% --emit onnx=planned.onnx
    python python/examples/replay_markers.py planned.onnx

Each step gets a line: the node of the file that it runs, the values that it reads, and the results
that are released after it. A copy to the host or back has the value that it moves.
docs/onnx-markers.md explains the markers. Only the package onnx is needed.
"""

import sys
from dataclasses import dataclass, field
from typing import NamedTuple

import onnx

COPIES = ("out", "drop", "in")


class Value(NamedTuple):
    """A result of a node: "o0" is its first output, "s" the statistic that it saves, and "g0" the
    gradient of its first output."""

    node: str
    place: str


@dataclass
class Step:
    kind: str  # "forward", "loss", "backward", "free", or a copy: "out", "drop" or "in"
    node: str = ""  # "12": the number of a node in the file; "12.1": an operation of a call
    reads: list[Value] = field(default_factory=list)
    frees: list[Value] = field(default_factory=list)  # released after the step
    moves: Value | None = None  # copied to the host or back


class MarkedModel:
    def __init__(self, model: onnx.ModelProto):
        self.graph = model.graph
        self.markers = {entry.key: entry.value for entry in model.metadata_props}
        if not self.markers.get("ckplan.schema_version", "").startswith(("2.", "3.")):
            raise ValueError("the model has no markers of version 2 or 3")
        self.of_node = [
            {entry.key: entry.value for entry in node.metadata_props} for node in self.graph.node
        ]
        self.producers = {
            name: (number, place)
            for number, node in enumerate(self.graph.node)
            for place, name in enumerate(node.output)
            if name
        }

    def has_calls(self) -> bool:
        """Returns whether functions are called, whose operations are in other graphs."""
        return any("ckplan.operations" in markers for markers in self.of_node)

    def steps(self) -> list[Step]:
        if "ckplan.steps" in self.markers:
            steps = self._steps_of_marker()
        else:
            steps = self._steps_by_rule()
        if not self.has_calls():
            for step in steps:
                step.reads = self._reads(step)
            if all(step.kind != "free" for step in steps):
                self._add_frees(steps)
        return steps

    def _steps_of_marker(self) -> list[Step]:
        steps: list[Step] = []
        kind = ""
        for word in self.markers["ckplan.steps"].split():
            if word == "loss":
                steps.append(Step("loss"))
            elif word in ("forward", "backward", "free", *COPIES):
                kind = word
            elif kind == "free":
                node, place = word.split(":")
                steps.append(Step(kind, node, frees=[Value(node, place)]))
            elif kind in COPIES:
                node, place = word.split(":")
                steps.append(Step(kind, node, moves=Value(node, place)))
            else:
                steps.append(Step(kind, word))
        return steps

    def _steps_by_rule(self) -> list[Step]:
        order = [n for n, markers in enumerate(self.of_node) if "ckplan.segment" in markers]
        order.sort(key=lambda n: int(self.of_node[n]["ckplan.segment"]))
        again = {n for n in order if self.of_node[n]["ckplan.action"] == "recompute"}
        steps = [Step("forward", str(n)) for n in order] + [Step("loss")]

        def provide(node: int) -> None:
            stack = [(node, iter(self._inputs(node)))] if node in again else []
            while stack:
                producer = next(stack[-1][1], None)
                if producer is None:
                    made, _ = stack.pop()
                    again.discard(made)
                    steps.append(Step("forward", str(made)))
                elif int(producer.node) in again:
                    stack.append((int(producer.node), iter(self._inputs(int(producer.node)))))

        for n in reversed(order):
            for value in self._backward_reads(n):
                provide(int(value.node))
            steps.append(Step("backward", str(n)))
        return steps

    def _made(self, name: str) -> Value | None:
        """Returns the result that holds the tensor; None for constants and outside tensors."""
        while name in self.producers:
            node, place = self.producers[name]
            action = self.of_node[node].get("ckplan.action")
            if action != "view":
                return Value(str(node), f"o{place}") if action else None
            name = self.graph.node[node].input[0]
        return None

    def _inputs(self, node: int) -> list[Value]:
        made = (self._made(name) for name in self.graph.node[node].input)
        return [value for value in made if value]

    def _backward_reads(self, node: int) -> list[Value]:
        reads = []
        for place in self.of_node[node].get("ckplan.backward_reads", "").split():
            if place[0] == "i":
                value = self._made(self.graph.node[node].input[int(place[1:])])
            else:
                value = Value(str(node), place)
            if value:
                reads.append(value)
        return reads

    def _reads(self, step: Step) -> list[Value]:
        if step.kind == "forward":
            return self._inputs(int(step.node))
        if step.kind == "backward":
            return self._backward_reads(int(step.node))
        if step.kind == "loss":
            made = (self._made(output.name) for output in self.graph.output)
            return [value for value in made if value]
        if step.kind in ("out", "drop"):
            return self._results_moved(step)
        return []

    @staticmethod
    def _results_moved(step: Step) -> list[Value]:
        """Returns what a copy moves, unless it is a gradient: these have no releases here."""
        return [step.moves] if step.moves and not step.moves.place.startswith("g") else []

    def _makes(self, node: int) -> list[Value]:
        places = [f"o{i}" for i, name in enumerate(self.graph.node[node].output) if name]
        if "s" in self.of_node[node].get("ckplan.backward_reads", "").split():
            places.append("s")
        return [Value(str(node), place) for place in places]

    def _add_frees(self, steps: list[Step]) -> None:
        """Releases each version of a result after the last step that reads it. A drop
        releases it at once."""
        last: dict[Value, Step] = {}
        for step in steps:
            for value in step.reads:
                last[value] = step
            if step.kind == "drop":
                for value in step.reads:
                    del last[value]
                step.frees += step.reads
            made: list[Value] = []
            if step.kind == "forward":
                made = self._makes(int(step.node))
            elif step.kind == "in":
                made = self._results_moved(step)
            for value in made:
                if value in last:
                    last[value].frees.append(value)
                last[value] = step
        for value, step in last.items():
            step.frees.append(value)


def main() -> None:
    marked = MarkedModel(onnx.load(sys.argv[1], load_external_data=False))
    for number, step in enumerate(marked.steps()):
        place = f":{step.moves.place}" if step.moves else ""
        words = [f"{number:5}  {step.kind:8} {step.node + place:6}"]
        for title, values in (("reads", step.reads), ("frees", step.frees)):
            if values:
                words.append(f"{title} " + " ".join(f"{v.node}:{v.place}" for v in values))
        print("  ".join(words).rstrip())


if __name__ == "__main__":
    main()
