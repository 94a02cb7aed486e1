#!/usr/bin/env python3
"""Writes small files as exporters and tools outside PyTorch write them.

usage: make_exports.py int4|jax|keras|ort-quantized|ort-training|sklearn [DIR]
needs: int4          onnx, onnx_ir, onnxruntime (1.32)
       jax           jax2onnx (0.17)
       keras         keras (3.15), torch, onnxscript
       ort-quantized onnx, onnxruntime (1.32)
       ort-training  onnx, onnxruntime-training (1.19), cerberus, h5py, torch
       sklearn       onnx, skl2onnx (1.20)

  int4_nbits.onnx         MatMulNBitsQuantizer of ONNX Runtime, with zero points; the head is not quantized
  int4_qdq.onnx           the same as DequantizeLinear of int4
  jax_scan.onnx           a recurrent network by jax.lax.scan
  jax_while.onnx          jax.lax.while_loop with a counter
  keras_lstm.onnx         keras.layers.LSTM and Dense, by model.export(format="onnx")
  ort_quantized.onnx      quantize_static of ONNX Runtime with QOperator, then its optimizer, but for the head
  ort_artifacts_*.onnx    onnxruntime.training.artifacts: the evaluation and the training model
  sklearn_head.onnx       a pipeline from skl2onnx, appended to the network that makes its features
"""
import os
import sys

FOLDER = sys.argv[2] if len(sys.argv) > 2 else os.path.dirname(os.path.abspath(__file__))


def path(name):
    return os.path.join(FOLDER, name + ".onnx")


def float_tensor(name, *dims):
    import numpy
    from onnx import numpy_helper

    count = int(numpy.prod(dims))
    return numpy_helper.from_array(numpy.linspace(-1, 1, count, dtype=numpy.float32).reshape(dims), name)


def mlp(node, names, classes, opset):
    """Returns a model of two layers. `node` makes the nodes of one."""
    import onnx
    from onnx import helper

    floats = onnx.TensorProto.FLOAT
    weights = [float_tensor(name, *dims) for name, dims in names.items()]
    graph = helper.make_graph(
        node, "mlp", [helper.make_tensor_value_info("x", floats, ["N", 32])],
        [helper.make_tensor_value_info("logits", floats, ["N", classes])], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def write_int4():
    import onnx
    from onnx import helper
    from onnxruntime.quantization import QuantFormat
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    nodes = [helper.make_node("MatMul", ["x", "up.weight"], ["u"], name="up"),
             helper.make_node("Relu", ["u"], ["r"], name="act"),
             helper.make_node("MatMul", ["r", "head.weight"], ["logits"], name="head")]
    model = mlp(nodes, {"up.weight": (32, 64), "head.weight": (64, 4)}, 4, 21)
    for name, form in (("int4_nbits", QuantFormat.QOperator), ("int4_qdq", QuantFormat.QDQ)):
        copy = onnx.ModelProto.FromString(model.SerializeToString())
        quantizer = MatMulNBitsQuantizer(copy, block_size=32, is_symmetric=False, accuracy_level=4,
                                         nodes_to_exclude=["head"], quant_format=form)
        quantizer.process()
        onnx.save(quantizer.model.model, path(name))


def write_jax():
    import jax
    import jax.numpy as jnp
    import onnx
    from jax2onnx import to_onnx

    w, u, b = jnp.ones((8, 16)), jnp.ones((16, 16)), jnp.ones(16)

    def scan(x):
        def step(h, at):
            h = jnp.tanh(at @ w + h @ u + b)
            return h, h

        return jax.lax.scan(step, jnp.zeros((x.shape[1], 16)), x)[1]

    def loop(x):
        return jax.lax.while_loop(lambda c: c[0] < 4, lambda c: (c[0] + 1, jnp.tanh(c[1] @ u)), (0, x))[1]

    onnx.save(to_onnx(scan, inputs=[jax.ShapeDtypeStruct((5, 4, 8), jnp.float32)], model_name="scan"),
              path("jax_scan"))
    onnx.save(to_onnx(loop, inputs=[("B", 16)], model_name="while"), path("jax_while"))


def write_keras():
    os.environ["KERAS_BACKEND"] = "torch"
    import keras
    import numpy

    layers = [keras.layers.Input((3, 4)), keras.layers.LSTM(6), keras.layers.Dense(2)]
    model = keras.Sequential(layers)
    model(numpy.zeros((2, 3, 4), "float32"))
    model.export(path("keras_lstm"), format="onnx", verbose=False)


def write_ort_training():
    import tempfile

    from onnx import helper
    from onnxruntime.training import artifacts

    weights = {"fc1.weight": (16, 32), "fc1.bias": (16,), "fc2.weight": (4, 16), "fc2.bias": (4,)}
    nodes = [helper.make_node("Gemm", ["x", "fc1.weight", "fc1.bias"], ["u"], name="fc1", transB=1),
             helper.make_node("Relu", ["u"], ["r"], name="act"),
             helper.make_node("Gemm", ["r", "fc2.weight", "fc2.bias"], ["logits"], name="fc2", transB=1)]
    with tempfile.TemporaryDirectory() as folder:
        artifacts.generate_artifacts(mlp(nodes, weights, 4, 15), requires_grad=list(weights),
                                     loss=artifacts.LossType.CrossEntropyLoss,
                                     optimizer=artifacts.OptimType.AdamW, artifact_directory=folder)
        for kind in ("eval", "training"):
            with open(os.path.join(folder, kind + "_model.onnx"), "rb") as made:
                with open(path("ort_artifacts_" + kind), "wb") as kept:
                    kept.write(made.read())


def write_ort_quantized():
    import numpy
    import onnxruntime
    from onnx import parser
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    text = """<ir_version: 8, opset_import: ["" : 17]> net (float[N,3,16,16] x) => (float[N,4] y) {
        [conv] c = Conv<pads = [1,1,1,1]>(x, w1) [leaky] l = LeakyRelu<alpha = 0.1>(c)
        [pool] p = AveragePool<kernel_shape = [2,2], strides = [2,2]>(l) [conv2] d = Conv<pads = [1,1,1,1]>(p, w2)
        [sigmoid] s = Sigmoid(d) [swish] m = Mul(d, s) [add] a = Add(m, p) [join] k = Concat<axis = 1>(a, m)
        [mean] g = GlobalAveragePool(k) [flat] f = Flatten(g) [fc] h = Gemm(f, w3) [soft] o = Softmax<axis = -1>(h)
        [head] y = MatMul(o, w4) }"""
    model = parser.parse_model(text)
    shapes = {"w1": (8, 3, 3, 3), "w2": (8, 8, 3, 3), "w3": (16, 10), "w4": (10, 4)}
    model.graph.initializer.extend(float_tensor(name, *dims) for name, dims in shapes.items())

    class Samples(CalibrationDataReader):
        left = [{"x": numpy.linspace(-1, 1, 1536, dtype=numpy.float32).reshape(2, 3, 16, 16)}]

        def get_next(self):
            return self.left.pop() if self.left else None

    quantize_static(model, path("ort_quantized"), Samples(), quant_format=QuantFormat.QOperator,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QUInt8, nodes_to_exclude=["head"])
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.optimized_model_filepath = path("ort_quantized")
    with open(path("ort_quantized"), "rb") as made:
        onnxruntime.InferenceSession(made.read(), options, providers=["CPUExecutionProvider"])


def write_sklearn():
    import numpy
    import onnx
    from onnx import compose, helper
    from skl2onnx import to_onnx
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    features = numpy.random.RandomState(0).randn(60, 16).astype(numpy.float32)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(features, numpy.arange(60) % 3)
    head = to_onnx(pipeline, features[:1], target_opset=17)
    nodes = [helper.make_node("MatMul", ["x", "up.weight"], ["u"], name="up"),
             helper.make_node("Relu", ["u"], ["logits"], name="act")]
    net = mlp(nodes, {"up.weight": (32, 16)}, 16, 17)
    net.opset_import.extend(one for one in head.opset_import if one.domain)
    net.ir_version = head.ir_version
    onnx.save(compose.merge_models(net, head, io_map=[("logits", head.graph.input[0].name)]), path("sklearn_head"))


WRITERS = {"int4": write_int4, "jax": write_jax, "keras": write_keras, "ort-quantized": write_ort_quantized,
           "ort-training": write_ort_training, "sklearn": write_sklearn}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in WRITERS:
        sys.exit(__doc__)
    WRITERS[sys.argv[1]]()
