#!/usr/bin/env python3
"""Make small BERT and GPT-2 from the models of this folder: the same operators, two layers, few channels.

usage: make_small_models.py [DIR]
needs: onnx, numpy
"""
import os
import sys

import numpy as np
import onnx
from onnx import numpy_helper

HERE = os.path.dirname(os.path.abspath(__file__))
LAYERS = 2
# Each size of the original and its replacement. All sizes differ, so a number says what it is.
BERT = {512: 8, 768: 24, 3072: 40, 64: 6, 12: 4, 30522: 29}
GPT2 = {1024: 8, 1025: 9, 768: 24, 2304: 72, 3072: 40, 64: 6, 12: 4, 50257: 29}
# With heads of 8 elements, which libraries take.
BERT_32 = {512: 10, 768: 32, 3072: 40, 64: 8, 12: 4, 30522: 29}
GPT2_32 = {1024: 10, 1025: 11, 768: 32, 2304: 96, 3072: 40, 64: 8, 12: 4, 50257: 29}


def small_tensor(tensor, sizes):
    dims = [sizes.get(dim, dim) for dim in tensor.dims]
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        tensor.dims[:] = dims
        del tensor.external_data[:]
        for key, value in (("location", "weights.bin"), ("offset", "0"),
                           ("length", str(4 * int(np.prod(dims))))):
            entry = tensor.external_data.add()
            entry.key, entry.value = key, value
        return
    values = numpy_helper.to_array(tensor)
    values = values[tuple(slice(0, dim) for dim in dims)]
    if values.dtype == np.int64 and values.ndim < 2:  # A shape, or an end of a slice.
        values = np.vectorize(lambda value: sizes.get(value, value), otypes=[np.int64])(values)
    tensor.CopyFrom(numpy_helper.from_array(np.array(values, order="C"), tensor.name))


def cut_layers(graph, is_bert):
    """Drops all layers but the first ones. Each layer has two LayerNormalizations."""
    norms = [node for node in graph.node if node.op_type == "LayerNormalization"]
    last = 2 * 12
    if is_bert:  # A layer ends with its second LayerNormalization.
        for node in graph.node:
            node.input[:] = [norms[2 * LAYERS].output[0] if name == norms[last].output[0] else name
                             for name in node.input]
    else:  # A layer begins with its first LayerNormalization, which reads the sum so far.
        norms[last].input[0] = norms[2 * LAYERS].input[0]
    needed = {output.name for output in graph.output}
    kept = []
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            needed.update(node.input)
            kept.append(node)
    del graph.node[:]
    graph.node.extend(reversed(kept))
    initializers = [tensor for tensor in graph.initializer if tensor.name in needed]
    del graph.initializer[:]
    graph.initializer.extend(initializers)


def make(source, sizes, folder, name):
    model = onnx.load(os.path.join(HERE, source + ".onnx"), load_external_data=False)
    cut_layers(model.graph, source.startswith("bert"))
    for tensor in model.graph.initializer:
        small_tensor(tensor, sizes)
    for value in list(model.graph.input) + list(model.graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.HasField("dim_value"):
                dim.dim_value = sizes.get(dim.dim_value, dim.dim_value)
    del model.graph.value_info[:]
    model.graph.name = name
    path = os.path.join(folder, name + ".onnx")
    onnx.save(model, path)
    onnx.checker.check_model(path, full_check=True)


if __name__ == "__main__":
    to = sys.argv[1] if len(sys.argv) > 1 else HERE
    make("bert_base_512", BERT, to, "small_bert")
    make("gpt2_small", GPT2, to, "small_gpt2")
    make("bert_base_512", BERT_32, to, "small_bert_32")
    make("gpt2_small", GPT2_32, to, "small_gpt2_32")
