#!/usr/bin/env python3
"""Writes graph files of any size, to measure how time and memory grow with it.

usage: scripts/large_graphs.py SHAPE NODES > graph.json        shapes: see SHAPES

A graph has about as many nodes as asked for. Sizes and costs vary from node to node, always in the same way.
"""
import json
import sys


class Graph:
    """A graph file in its full form, node by node."""

    def __init__(self, name):
        self.parts = {"name": name, "tensors": [], "nodes": [], "outputs": []}
        self.random = 12345
        self.input = self.tensor("input")

    def draw(self, limit):
        """A number from 1 to limit, the same at each run."""
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

    def returning(self, *outputs):
        self.parts["outputs"] = list(outputs)
        return self.parts


def chain(nodes):
    """One node after the other."""
    graph = Graph("chain")
    last = graph.input
    for i in range(nodes):
        last = graph.node([last], op="Conv" if i % 2 == 0 else "Relu")
    return graph.returning(last)


def residual(nodes):
    """Blocks of two nodes, with a connection past them."""
    graph = Graph("residual")
    last = graph.node([graph.input])
    for _ in range(nodes // 3):
        last = graph.node([last, graph.node([graph.node([last])], op="Relu")], op="Add")
    return graph.returning(last)


def readers(nodes):
    """One tensor that all other nodes read, and a node that joins their results."""
    graph = Graph("readers")
    shared = graph.node([graph.input])
    return graph.returning(graph.node([graph.node([shared]) for _ in range(nodes)], op="Concat"))


def split(nodes):
    """A node with many outputs, each of them read once, and a node that joins the results."""
    graph = Graph("split")
    parts = graph.node([graph.input], outputs=nodes, op="Split")
    return graph.returning(graph.node([graph.node([part], op="Relu") for part in parts],
                                      op="Concat"))


def outputs(nodes):
    """A chain whose every result the model returns."""
    graph = Graph("outputs")
    results = [graph.input]
    for _ in range(nodes):
        results.append(graph.node(results[-1:]))
    return graph.returning(*results[1:])


def nested(nodes):
    """The first result is read by the last node, the second by the last but one, and so on."""
    graph = Graph("nested")
    open_results = [graph.input]
    for _ in range(nodes // 2):
        open_results.append(graph.node(open_results[-1:]))
    last = open_results[-1]
    for result in reversed(open_results[1:-1]):
        last = graph.node([last, result], op="Add")
    return graph.returning(last)


def masks(nodes):
    """A chain, and as many results without a gradient, all of which its last node reads."""
    graph = Graph("masks")
    last = graph.input
    asides = []
    for _ in range(nodes // 2):
        asides.append(graph.node([graph.input], op="Cast", requires_grad=False))
        last = graph.node([last])
    return graph.returning(graph.node([last, *asides], op="Where"))


SHAPES = {shape.__name__: shape
          for shape in (chain, residual, readers, split, outputs, nested, masks)}

if __name__ == "__main__":
    json.dump(SHAPES[sys.argv[1]](int(sys.argv[2])), sys.stdout)
