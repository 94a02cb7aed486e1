// FLOPs and traffic, worked out by hand for small shapes.
#include "lib/model/op_work.h"

#include <doctest/doctest.h>

#include "lib/model/testing_proto.h"

namespace ckplan {
namespace {

// The work of the last operation. Its first input is x times a trained scale, so it has a backward.
OpWork LastWork(const std::string& graph, int opset = 20) {
  const Result<Model> model = LoadProto(ParseGraph(graph, opset));
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  const Model::Impl& impl = model->impl();
  const ModelFacts facts = FindFacts(impl);
  const Operation& operation = impl.operations.back();
  const OperationFacts& own = facts.operations.back();
  const BackwardReads reads = FindBackwardReads(impl, facts, operation, own, Autograd::kMinimal);
  return WorkOf(impl, facts, operation, own, reads, Bytes(0));
}

std::string Graph(const std::string& inputs, const std::string& weights, const std::string& body) {
  return "g (" + inputs + ") => (float[A] y) <float s = {1.0}, float[1] t = {1.0}" + weights +
         "> { h = PRelu(x, t) " + body + " }";
}

TEST_CASE("work: a multiply-add counts as two, in each matrix operator") {
  struct Row {
    const char* name;
    const char* inputs;
    const char* body;
    int64_t flops;
    int64_t gradients;  // Backward costs the forward count so many times.
  };
  const Row rows[] = {
      {"convolution", "float[2,4,8,8] x, float[6,4,3,3] w", "y = Conv(h, w)",
       2 * (2 * 6 * 6 * 6) * (4 * 3 * 3), 1},
      {"grouped convolution", "float[2,4,8,8] x, float[6,2,3,3] w", "y = Conv<group = 2>(h, w)",
       2 * (2 * 6 * 6 * 6) * (2 * 3 * 3), 1},
      {"with bias", "float[2,4,8,8] x, float[6,4,3,3] w, float[6] b", "y = Conv(h, w, b)",
       2 * (2 * 6 * 6 * 6) * (4 * 3 * 3) + 2 * 6 * 6 * 6, 1},
      {"one dimension", "float[2,4,8] x, float[6,4,3] w", "y = Conv(h, w)",
       2 * (2 * 6 * 6) * (4 * 3), 1},
      {"transposed convolution", "float[2,4,5,5] x, float[4,6,2,2] w", "y = ConvTranspose(h, w)",
       2 * (2 * 4 * 5 * 5) * (6 * 2 * 2), 1},
      {"matrix product", "float[3,4,5] x, float[5,7] w", "y = MatMul(h, w)", 2 * 3 * 4 * 7 * 5, 1},
      {"with itself", "float[3,4,4] x", "y = MatMul(h, h)", 2 * 3 * 4 * 4 * 4, 2},
      {"Gemm, transposed", "float[5,3] x, float[7,5] w", "y = Gemm<transA = 1, transB = 1>(h, w)",
       2 * 3 * 7 * 5, 1},
      {"Einsum", "float[3,4,5] x, float[3,5,6] w",
       "y = Einsum<equation = \"bij, bjk -> bik\">(h, w)", 2 * 3 * 4 * 5 * 6, 1},
      {"Einsum with dots", "float[3,2,4,5] x, float[5,6] w",
       "y = Einsum<equation = \"...ij,jk->...ik\">(h, w)", 2 * 3 * 2 * 4 * 5 * 6, 1},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const OpWork work = LastWork(Graph(row.inputs, "", row.body));
    CHECK(work.forward_flops == row.flops);
    CHECK(work.backward_flops == row.flops * row.gradients);
    CHECK(work.uses_matrix_units);
  }
}

TEST_CASE("work: weights are trained, so their gradient counts too") {
  const OpWork work =
      LastWork(Graph("float[2,2] x", ", float[2,2] w = {1,2,3,4}", "y = MatMul(h, w)"));
  CHECK(work.forward_flops == 2 * 2 * 2 * 2);
  CHECK(work.backward_flops == 2 * work.forward_flops);
  // Forward: h, w, y. Backward: dy, h, w, dh, dw.
  CHECK(work.forward_traffic == Bytes(3 * 16));
  CHECK(work.backward_traffic == Bytes(5 * 16));
}

TEST_CASE("work: recurrent operators count gates, steps and directions") {
  const std::string inputs = "float[7,3,5] x, float[2,%d,5] w, float[2,%d,4] r";
  const auto flops = [&](const char* op, int gates) {
    char text[128];
    std::snprintf(text, sizeof text, inputs.c_str(), gates * 4, gates * 4);
    return LastWork(Graph(text, "",
                          std::string("y = ") + op +
                              "<hidden_size = 4, direction = \"bidirectional\">(h, w, r)"))
        .forward_flops;
  };
  const auto expected = [](int gates) {
    return int64_t{2 * 7 * 3} * (2 * gates * 4 * (5 + 4) + 10 * gates * 4);
  };
  CHECK(flops("LSTM", 4) == expected(4));
  CHECK(flops("GRU", 3) == expected(3));
  CHECK(flops("RNN", 1) == expected(1));
}

TEST_CASE("work: attention counts two products and a softmax for each query and key") {
  const OpWork work = LastWork(Graph("float[2,3,10,16] x, float[2,3,12,16] k, float[2,3,12,8] v",
                                     "", "y = Attention(h, k, v)"),
                               23);
  CHECK(work.forward_flops == int64_t{2 * 3 * 10 * 12} * (2 * (16 + 8) + 14));
}

TEST_CASE("work: movement has no flops, and picking reads what it picks") {
  const OpWork gather = LastWork(Graph("float[1000,4] x, int64[3] i", "", "y = Gather(h, i)"));
  CHECK(gather.forward_flops == 0);
  CHECK(gather.forward_traffic == Bytes(2 * 3 * 4 * 4 + 3 * 8));
  const OpWork transpose = LastWork(Graph("float[5,6] x", "", "y = Transpose(h)"));
  CHECK(transpose.forward_flops == 0);
  CHECK(transpose.forward_traffic == Bytes(2 * 5 * 6 * 4));
  CHECK_FALSE(transpose.uses_matrix_units);
}

TEST_CASE("work: pooling counts its window, elementwise work its elements") {
  CHECK(LastWork(
            Graph("float[2,3,8,8] x", "", "y = MaxPool<kernel_shape = [2,2], strides = [2,2]>(h)"))
            .forward_flops == 2 * 3 * 4 * 4 * 4);
  CHECK(LastWork(Graph("float[2,3] x", "", "y = Relu(h)")).forward_flops == 6);
  CHECK_FALSE(LastWork(Graph("float[2,3] x", "", "y = Relu(h)")).is_convolution);
  CHECK(LastWork(Graph("float[1,1,8,8] x, float[1,1,3,3] w", "", "y = Conv(h, w)")).is_convolution);
}

}  // namespace
}  // namespace ckplan
