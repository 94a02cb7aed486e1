#!/usr/bin/env python3
"""Writes graph files of any size, to measure how time and memory grow with it.

    python/benchmarks/large_graphs.py SHAPE NODES >graph.json

A graph has about NODES nodes; its training step has twice as many operations. Sizes and
costs vary between nodes, but not between runs; those of transformers repeat in each layer.
"""
import argparse
import json
import sys


class Graph:
    """A graph file in its full form, node by node."""

    def __init__(self, name):
        self.parts = {"name": name, "tensors": [], "nodes": [], "outputs": []}
        self.random = 12345
        self.input = self.tensor("input")

    def draw(self, limit):
        """Returns a number from 1 to limit, the same in each run."""
        self.random = self.random * 1103515245 % 2**31 + 12345
        return self.random // 65536 % limit + 1

    def tensor(self, kind="activation", **fields):
        tensor = {"id": len(self.parts["tensors"]), "bytes": 64 * self.draw(16), "kind": kind}
        self.parts["tensors"].append({**tensor, **fields})
        return tensor["id"]

    def node(self, inputs, outputs=1, op="Conv", requires_grad=True):
        made = [self.tensor(requires_grad=requires_grad) for _ in range(outputs)]
        self.parts["nodes"].append({
            "id": len(self.parts["nodes"]), "name": f"n{len(self.parts['nodes'])}", "op": op,
            "inputs": inputs, "outputs": made, "backward_reads": inputs,
            "forward_cost": self.draw(20)})
        return made if outputs > 1 else made[0]

    def sized(self, inputs, op, units, cost, backward_reads=None, reads_output=False):
        """Adds a node with one output of `units` times 1,024 bytes. Backward reads its inputs."""
        made = self.tensor(bytes=1024 * units)
        reads = inputs if backward_reads is None else backward_reads
        self.parts["nodes"].append({
            "id": len(self.parts["nodes"]), "name": f"n{len(self.parts['nodes'])}", "op": op,
            "inputs": inputs, "outputs": [made],
            "backward_reads": [made] if reads_output else reads, "forward_cost": cost})
        return made

    def returning(self, *outputs):
        self.parts["outputs"] = list(outputs)
        return self.parts


def chain(nodes):
    """Makes nodes in a chain."""
    graph = Graph("chain")
    last = graph.input
    for i in range(nodes):
        last = graph.node([last], op="Conv" if i % 2 == 0 else "Relu")
    return graph.returning(last)


def residual(nodes):
    """Makes blocks of two nodes, each with a skip connection."""
    graph = Graph("residual")
    last = graph.node([graph.input])
    for _ in range(nodes // 3):
        last = graph.node([last, graph.node([graph.node([last])], op="Relu")], op="Add")
    return graph.returning(last)


def readers(nodes):
    """Makes one tensor that all other nodes read, and a node that joins their results."""
    graph = Graph("readers")
    shared = graph.node([graph.input])
    return graph.returning(graph.node([graph.node([shared]) for _ in range(nodes)], op="Concat"))


def split(nodes):
    """Makes a node with many outputs, each read once, and a node that joins the results."""
    graph = Graph("split")
    parts = graph.node([graph.input], outputs=nodes, op="Split")
    return graph.returning(graph.node([graph.node([part], op="Relu") for part in parts],
                                      op="Concat"))


def outputs(nodes):
    """Makes a chain of which the model returns every result."""
    graph = Graph("outputs")
    results = [graph.input]
    for _ in range(nodes):
        results.append(graph.node(results[-1:]))
    return graph.returning(*results[1:])


def nested(nodes):
    """Makes the last node read the first result, the last but one the second, and so on."""
    graph = Graph("nested")
    open_results = [graph.input]
    for _ in range(nodes // 2):
        open_results.append(graph.node(open_results[-1:]))
    last = open_results[-1]
    for result in reversed(open_results[1:-1]):
        last = graph.node([last, result], op="Add")
    return graph.returning(last)


def masks(nodes):
    """Makes a chain, and as many results without a gradient, all of which the last node reads."""
    graph = Graph("masks")
    last = graph.input
    asides = []
    for _ in range(nodes // 2):
        asides.append(graph.node([graph.input], op="Cast", requires_grad=False))
        last = graph.node([last])
    return graph.returning(graph.node([last, *asides], op="Where"))


def transformer(nodes):
    """Makes encoder layers of 16 nodes, with attention and a perceptron, sized as in BERT base."""
    graph = Graph("transformer")
    last = graph.sized([graph.input], "Gather", 1, cost=1)
    for _ in range(nodes // 16):
        query, key, value = (graph.sized([last], "MatMul", 1, cost=12) for _ in range(3))
        scores = graph.sized([query, key], "MatMul", 2, cost=4)
        weights = graph.sized([scores], "Softmax", 2, cost=2, reads_output=True)
        kept = graph.sized([weights], "Dropout", 2, cost=2)
        context = graph.sized([kept, value], "MatMul", 1, cost=4)
        projected = graph.sized([context], "MatMul", 1, cost=12)
        sum_ = graph.sized([graph.sized([projected], "Dropout", 1, cost=1), last], "Add", 1,
                           cost=1, backward_reads=[])
        middle = graph.sized([sum_], "LayerNormalization", 1, cost=1)
        hidden = graph.sized([middle], "MatMul", 4, cost=48)
        active = graph.sized([hidden], "Gelu", 4, cost=4)
        out = graph.sized([active], "MatMul", 1, cost=48)
        sum_ = graph.sized([graph.sized([out], "Dropout", 1, cost=1), middle], "Add", 1, cost=1,
                           backward_reads=[])
        last = graph.sized([sum_], "LayerNormalization", 1, cost=1)
    return graph.returning(last)


SHAPES = {shape.__name__: shape
          for shape in (chain, residual, readers, split, outputs, nested, masks, transformer)}


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("shape", metavar="SHAPE", choices=SHAPES,
                         help=f"one of {', '.join(SHAPES)}")
    options.add_argument("nodes", metavar="NODES", type=int)
    given = options.parse_args()
    json.dump(SHAPES[given.shape](given.nodes), sys.stdout)


if __name__ == "__main__":
    main()
