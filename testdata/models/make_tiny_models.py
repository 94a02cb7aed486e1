#!/usr/bin/env python3
"""Make the tiny models with weights, by hand, for tests of ckexec.

usage: make_tiny_models.py [DIR]
needs: onnx, numpy
"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH = 16
CLASSES = 5


def weight(rng, name, *shape):
    bound = np.sqrt(3.0 / shape[-1])
    return numpy_helper.from_array(rng.uniform(-bound, bound, shape).astype(np.float32), name)


def model(name, nodes, initializers, output_shape, shapes=()):
    graph = helper.make_graph(
        nodes, name,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", WIDTH])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, output_shape)], initializers,
        value_info=shapes)
    made = helper.make_model(graph, opset_imports=[
        helper.make_opsetid("", 17), helper.make_opsetid("org.example", 1)], ir_version=8,
                             producer_name="make_tiny_models.py")
    onnx.checker.check_model(made, full_check=True)
    return made


def mlp():
    """Six layers of Gemm and Tanh, then scores of five classes."""
    rng = np.random.default_rng(1)
    nodes, initializers, last = [], [], "x"
    for i in range(6):
        initializers += [weight(rng, f"w{i}", WIDTH, WIDTH), weight(rng, f"b{i}", WIDTH)]
        nodes += [helper.make_node("Gemm", [last, f"w{i}", f"b{i}"], [f"g{i}"], f"gemm{i}", transB=1),
                  helper.make_node("Tanh", [f"g{i}"], [f"a{i}"], f"tanh{i}")]
        last = f"a{i}"
    initializers += [weight(rng, "w6", CLASSES, WIDTH), weight(rng, "b6", CLASSES)]
    nodes.append(helper.make_node("Gemm", [last, "w6", "b6"], ["y"], "gemm6", transB=1))
    return model("tiny_mlp", nodes, initializers, ["N", CLASSES])


def no_kernel():
    """Operators of a domain of their own: ckplan plans them, nobody has kernels for them."""
    rng = np.random.default_rng(1)
    nodes = [helper.make_node("Gemm", ["x", "w", "b"], ["g"], "gemm", transB=1),
             helper.make_node("Swirl", ["g"], ["s"], "swirl", domain="org.example"),
             helper.make_node("Tanh", ["s"], ["t"], "tanh"),
             helper.make_node("Swirl", ["t"], ["u"], "swirl_again", domain="org.example"),
             helper.make_node("Blend", ["u", "g"], ["y"], "blend", domain="org.example")]
    shapes = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", WIDTH])
              for name in ("g", "s", "t", "u")]
    return model("tiny_no_kernel", nodes,
                 [weight(rng, "w", WIDTH, WIDTH), weight(rng, "b", WIDTH)], ["N", WIDTH], shapes)


if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else "."
    for made in (mlp(), no_kernel()):
        onnx.save(made, f"{folder}/{made.graph.name}.onnx")
