// FLOPs and memory traffic, worked out by hand for small shapes.
#include "lib/problem/ops/work.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "lib/executor/testing/op_case.h"

namespace ckplan {

namespace {

OpWork WorkOfCase(const reference::CaseRow& row) {
  const OpSpec spec = reference::SpecOfCase(row);
  return WorkOf(spec, FindBackwardReads(spec, Autograd::kMinimal), Bytes(0));
}

TEST_CASE("work: a multiply-add counts as two, in each matrix operator") {
  struct Row {
    const char* name;
    reference::CaseRow op;
    int64_t flops;
    int64_t gradients;  // Backward's FLOPs as a multiple of forward's.
  };
  const Row rows[] = {
      {"convolution", {"Conv", "f2x4x8x8 f6x4x3x3~ -> f2x6x6x6"}, 2 * 432 * (4 * 3 * 3), 1},
      {"grouped convolution",
       {"Conv", "f2x4x8x8 f6x2x3x3~ -> f2x6x6x6", "group=2"},
       2 * 432 * (2 * 3 * 3),
       1},
      {"with bias", {"Conv", "f2x4x8x8 f6x4x3x3~ f6~ -> f2x6x6x6"}, 2 * 432 * (4 * 3 * 3) + 432, 1},
      {"one dimension", {"Conv", "f2x4x8 f6x4x3~ -> f2x6x6"}, 2 * (2 * 6 * 6) * (4 * 3), 1},
      {"transposed convolution",
       {"ConvTranspose", "f2x4x5x5 f4x6x2x2~ -> f2x6x6x6"},
       2 * (2 * 4 * 5 * 5) * (6 * 2 * 2),
       1},
      {"matrix product", {"MatMul", "f3x4x5 f5x7~ -> f3x4x7"}, 2 * 3 * 4 * 7 * 5, 1},
      {"of two that want one", {"MatMul", "f3x4x4 f3x4x4 -> f3x4x4"}, 2 * 3 * 4 * 4 * 4, 2},
      {"Gemm, transposed", {"Gemm", "f5x3 f7x5~ -> f3x7", "transA=1 transB=1"}, 2 * 3 * 7 * 5, 1},
      {"Einsum",
       {"Einsum", "f3x4x5 f3x5x6~ -> f3x4x6", "equation='bij,bjk->bik'"},
       2 * 3 * 4 * 5 * 6,
       1},
      {"Einsum with dots",
       {"Einsum", "f3x2x4x5 f5x6~ -> f3x2x4x6", "equation='...ij,jk->...ik'"},
       2 * 3 * 2 * 4 * 5 * 6,
       1},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const OpWork work = WorkOfCase(row.op);
    CHECK(work.forward_flops == row.flops);
    CHECK(work.backward_flops == row.flops * row.gradients);
    CHECK(work.uses_matrix_units);
  }
}

TEST_CASE("work: the gradient of a trained weight counts, the gradient of a bias does not") {
  const OpWork work = WorkOfCase({"MatMul", "f2x2 f2x2! -> f2x2"});
  CHECK(work.forward_flops == 2 * 2 * 2 * 2);
  CHECK(work.backward_flops == 2 * work.forward_flops);
  // Forward moves x, w, y. Backward moves dy, x, w, dx, dw.
  CHECK(work.forward_traffic == Bytes(3 * 16));
  CHECK(work.backward_traffic == Bytes(5 * 16));
  const OpWork biased = WorkOfCase({"Gemm", "f2x2 f2x2! f2! -> f2x2"});
  CHECK(biased.backward_flops == 2 * biased.forward_flops);
}

TEST_CASE("work: without a gradient there is no backward") {
  const OpWork work = WorkOfCase({"Relu", "f2x3~ -> f2x3"});
  CHECK(work.forward_flops == 6);
  CHECK(work.backward_flops == 0);
  CHECK(work.backward_traffic == Bytes(0));
}

TEST_CASE("work: forward writes the statistic, and backward reads it if it needs it") {
  const OpSpec spec =
      reference::SpecOfCase({"MaxPool", "f1x1x4x4 -> f1x1x2x2", "kernel_shape=[2,2]"});
  const BackwardReads reads = FindBackwardReads(spec, Autograd::kMinimal);
  const OpWork work = WorkOf(spec, reads, Bytes(16));
  CHECK(work.forward_traffic == Bytes(64 + 16 + 16));
  CHECK(work.backward_traffic == Bytes(16 + 16 + 64));  // dy, indices, dx.
}

TEST_CASE("work: recurrent operators count gates, steps and directions") {
  const auto expected = [](int gates) {
    return int64_t{2 * 7 * 3} * (2 * gates * 4 * (5 + 4) + 10 * gates * 4);
  };
  CHECK(WorkOfCase({"LSTM", "f7x3x5 f2x16x5~ f2x16x4~ -> f7x2x3x4"}).forward_flops == expected(4));
  CHECK(WorkOfCase({"GRU", "f7x3x5 f2x12x5~ f2x12x4~ -> f7x2x3x4"}).forward_flops == expected(3));
  CHECK(WorkOfCase({"RNN", "f7x3x5 f2x4x5~ f2x4x4~ -> f7x2x3x4"}).forward_flops == expected(1));
}

TEST_CASE("work: attention counts two products and a softmax for each query and key") {
  const int64_t flops = int64_t{2 * 3 * 10 * 12} * (2 * (16 + 8) + 14);
  CHECK(WorkOfCase({"Attention", "f2x3x10x16 f2x3x12x16~ f2x3x12x8~ -> f2x3x10x8"}).forward_flops ==
        flops);
  // One axis contains all heads, and four of the keys come from the past.
  const reference::CaseRow joined = {
      "Attention", "f2x10x48 f2x8x48~ f2x8x24~ _ f2x3x4x16~ f2x3x4x8~ -> f2x10x24",
      "q_num_heads=3 kv_num_heads=3"};
  CHECK(WorkOfCase(joined).forward_flops == flops);
  const reference::CaseRow fused = {
      "FusedAttention", "f2x10x48 f2x12x48~ f2x12x24~ -> f2x10x24",
      "batch=2 heads=3 key_heads=3 queries=10 keys=12 size=16 value_size=8 q_axes='bshd' "
      "k_axes='bshd' v_axes='bshd' y_axes='bshd'"};
  CHECK(WorkOfCase(fused).forward_flops == flops);
}

TEST_CASE("work: data movement has no FLOPs, and a gather reads only the selected elements") {
  const OpWork gather = WorkOfCase({"Gather", "f1000x4 i3 -> f3x4"});
  CHECK(gather.forward_flops == 0);
  CHECK(gather.forward_traffic == Bytes(2 * 3 * 4 * 4 + 3 * 8));
  const OpWork transpose = WorkOfCase({"Transpose", "f5x6 -> f6x5"});
  CHECK(transpose.forward_flops == 0);
  CHECK(transpose.forward_traffic == Bytes(2 * 5 * 6 * 4));
  CHECK_FALSE(transpose.uses_matrix_units);
}

TEST_CASE("work: pooling counts its window, elementwise operators their elements") {
  CHECK(WorkOfCase({"MaxPool", "f2x3x8x8 -> f2x3x4x4", "kernel_shape=[2,2] strides=[2,2]"})
            .forward_flops == 2 * 3 * 4 * 4 * 4);
  CHECK(WorkOfCase({"Relu", "f2x3 -> f2x3"}).forward_flops == 6);
  CHECK_FALSE(WorkOfCase({"Relu", "f2x3 -> f2x3"}).is_convolution);
  CHECK(WorkOfCase({"Conv", "f1x1x8x8 f1x1x3x3~ -> f1x1x6x6"}).is_convolution);
}

TEST_CASE("work: sizes beyond any machine saturate") {
  const OpWork work = WorkOfCase({"MatMul",
                                  "f3000000000x3000000000 f3000000000x3000000000~ -> "
                                  "f3000000000x3000000000"});
  CHECK(work.forward_flops == int64_t{1} << 61);
  CHECK(work.forward_traffic == Bytes(int64_t{1} << 61));
}

struct TemporariesRow {
  std::string type;
  std::vector<int64_t> a, b;
  bool needs_a, needs_b;
  int64_t bytes;
  std::vector<int64_t> result = {4, 8};  // 128 bytes.
};

TEST_CASE("eager temporaries: gradients that PyTorch composes have the tensors of their formula") {
  const std::vector<int64_t> whole = {4, 8};
  const std::vector<int64_t> row = {8};
  const std::vector<TemporariesRow> rows = {
      {"Pow", whole, {}, true, false, 256},
      {"Pow", whole, {}, false, false, 0},
      {"Div", whole, whole, true, true, 256},
      {"Div", whole, whole, false, true, 384},
      {"Div", whole, row, true, true, 512 - 128 - 32},
      {"Div", whole, row, true, false, 0},
      {"Mul", whole, whole, true, true, 0},
      {"Mul", whole, row, true, true, 128},
      {"Mul", whole, row, true, false, 0},
      {"Mul", row, whole, true, false, 128},
      {"PRelu", whole, row, true, true, 128},
      {"PRelu", whole, row, true, false, 0},
      {"Add", whole, row, true, true, 0},
      {"Sigmoid", whole, {}, true, false, 0},
      {"Abs", whole, {}, true, false, 128},
      {"CumSum", whole, {}, true, false, 256},
      {"Erf", whole, {}, true, false, 512},
      {"Sqrt", whole, {}, true, false, 128},
      {"Rsqrt", whole, {}, true, false, 256},
      {"ReduceVariance", whole, {1}, true, false, 128, {4}},
      {"Cos", whole, {}, true, false, 256},
      {"Max", whole, whole, true, true, 256 + 2 * 32},
      {"Min", whole, row, true, true, 384 + 2 * 32},
      {"ReduceMax", whole, {1}, true, false, 16 + 8 * 4 + 32, {4}},
      {"ReduceMin", whole, {1}, true, false, 32 + 8 * 8 + 32, {8}},
      {"ReduceL1", whole, {1}, true, false, 128, {4}},
      {"ReduceLogSumExp", whole, {1}, true, false, 256, {4}},
      {"ReduceSum", whole, {1}, true, false, 0, {4}},
      {"TopK", whole, {1}, true, false, 128, {4, 2}},
      {"GatherElements", whole, {4, 2}, true, false, 128, {4, 2}},
      {"GatherND", whole, {3, 1}, true, false, 128, {3, 8}},
  };
  for (const TemporariesRow& one : rows) {
    CAPTURE(one.type);
    OpSpec spec;
    spec.type = one.type;
    const auto operand = [](const std::vector<int64_t>& dims, bool has_gradient) {
      Operand made;
      made.is_present = true;
      made.dims = dims;
      made.has_gradient = has_gradient;
      return made;
    };
    spec.inputs = {operand(one.a, one.needs_a), operand(one.b, one.needs_b)};
    spec.outputs = {operand(one.result, true)};
    CHECK(EagerTemporaries(spec) == Bytes(one.bytes));
  }
}

}  // namespace

}  // namespace ckplan
