#include "lib/problem/ops/backward_reads.h"

#include <doctest/doctest.h>

#include <string>

#include "lib/executor/testing/op_case.h"

namespace ckplan {

namespace {

// "x0 x2 y0 s": inputs 0 and 2, output 0, the statistic.
std::string ReadsOf(const OpSpec& spec, Autograd autograd = Autograd::kMinimal) {
  const BackwardReads reads = FindBackwardReads(spec, autograd);
  std::string text;
  const auto add = [&text](const std::string& word) { text += (text.empty() ? "" : " ") + word; };
  for (const size_t i : reads.inputs) add("x" + std::to_string(i));
  for (const size_t i : reads.outputs) add("y" + std::to_string(i));
  if (reads.statistic) add("s");
  return text;
}

TEST_CASE("backward reads: as the letters of the table say, and only for requested gradients") {
  struct Row {
    reference::CaseRow op;
    const char* minimal;
    const char* torch;
  };
  const Row rows[] = {
      {{"Sigmoid", "f2 -> f2"}, "y0", "y0"},
      {{"Elu", "f2 -> f2"}, "y0", "x0"},
      {{"Elu", "f2 -> f2", "in_place=1"}, "y0", "y0"},
      {{"LeakyRelu", "f2 -> f2", "in_place=2"}, "y0", "y0"},
      // PyTorch saves a copy of the input.
      {{"Swish", "f2 -> f2", "in_place=1"}, "x0", "x0"},
      {{"Neg", "f2 -> f2"}, "", ""},
      {{"Pad", "f3 i2 -> f5", "mode='reflect'"}, "", "x0"},
      {{"Pad", "f3 i2 -> f5", "mode='edge'"}, "", "x0"},
      {{"Pad", "f3 i2 -> f5", "mode='wrap'"}, "", ""},
      {{"Pad", "f3 i2 -> f5"}, "", ""},
      {{"Conv", "f1x1x4x4 f1x1x3x3! f1! -> f1x1x2x2"}, "x0 x1", "x0 x1"},
      {{"Conv", "f1x1x4x4 f1x1x3x3* f1! -> f1x1x2x2"}, "x1", "x1"},
      {{"Conv", "f1x1x4x4~ f1x1x3x3! -> f1x1x2x2"}, "x0", "x0"},
      {{"Mul", "f2 f2~ -> f2"}, "x1", "x1"},
      {{"Einsum", "f2 f2~ f2 -> fs", "equation='i,i,i->'"}, "x0 x1 x2", "x0 x1 x2"},
      {{"Div", "f2 f2~ -> f2"}, "x1", "x1"},
      {{"Div", "f2 f2 -> f2"}, "x1 y0", "x0 x1"},
      {{"Pow", "f2 f2~ -> f2"}, "x0 x1", "x0 x1"},
      {{"Pow", "f2 f2 -> f2"}, "x0 x1 y0", "x0 x1 y0"},
      {{"Max", "f2 _ f2 -> f2"}, "x0 x2", "x0 x2"},
      {{"Gather", "f3x2 i4 -> f4x2"}, "x1", "x1"},
      {{"Where", "b2 f2 f2 -> f2"}, "x0", "x0"},
      {{"BatchNormalization", "f2x3 f3! f3! f3* f3* -> f2x3"}, "x0 s", "x0 s"},
      {{"MaxPool", "f1x1x4x4 -> f1x1x2x2", "kernel_shape=[2,2]"}, "s", "x0 s"},
      {{"Dropout", "f2 -> f2"}, "", "s"},
      // The saved probabilities already include the attention mask.
      {{"Attention", "f1x1x2x4 f1x1x2x4 f1x1x2x4 f2x2 -> f1x1x2x4"},
       "x0 x1 x2 s",
       "x0 x1 x2 x3 y0 s"},
      // Backward recomputes the scores and applies the mask to them.
      {{"FusedAttention", "f1x1x2x4 f1x1x2x4 f1x1x2x4 b2x2~ f2x2 -> f1x1x2x4",
        "batch=1 heads=1 key_heads=1 queries=2 keys=2 size=4 value_size=4 mask_dims=[1,1,2,2] "
        "bias_dims=[1,1,2,2]"},
       "x0 x1 x2 x3 x4 y0 s",
       "x0 x1 x2 x3 x4 y0 s"},
  };
  for (const Row& row : rows) {
    const OpSpec spec = reference::SpecOfCase(row.op);
    CAPTURE(spec.type);
    CAPTURE(std::string(row.op.operands));
    CHECK(ReadsOf(spec) == row.minimal);
    CHECK(ReadsOf(spec, Autograd::kTorch) == row.torch);
  }
}

TEST_CASE("backward reads: an input that is planned as an integer is not read as a float") {
  OpSpec spec = reference::SpecOfCase({"Max", "f2 f2 -> f2"});
  CHECK(ReadsOf(spec) == "x0 x1");
  spec.inputs[1].planned = {TensorType::kInt8, 2};
  CHECK(ReadsOf(spec) == "x0");
}

TEST_CASE("backward reads: an unknown operator reads everything") {
  CHECK(ReadsOf(reference::SpecOfCase({"Unheard", "f2 i2 _ -> f2 i2"})) == "x0 x1 y0 y1");
}

// Formats the statistic as "moments 24", or as "" if forward saves nothing. All outputs are stored.
std::string Saved(const OpSpec& spec, Autograd autograd = Autograd::kMinimal) {
  std::vector<bool> is_stored;
  for (const Operand& output : spec.outputs) is_stored.push_back(output.is_present);
  const auto saved = StatisticOf(spec, autograd, is_stored);
  if (!saved) return "";
  return std::string(saved->suffix) + " " + std::to_string(saved->bytes.count());
}

TEST_CASE("statistics: sizes worked out by hand") {
  struct Row {
    reference::CaseRow op;
    const char* minimal;
    const char* torch;
  };
  const Row rows[] = {
      {{"Relu", "f2x3 -> f2x3"}, "", ""},
      {{"BatchNormalization", "f2x3x4 f3 f3 f3 f3 -> f2x3x4"}, "moments 24", "moments 24"},
      {{"LayerNormalization", "f2x3x4 f4 -> f2x3x4"}, "moments 48", "moments 48"},
      {{"LayerNormalization", "f2x3x4 f3x4 -> f2x3x4", "axis=1"}, "moments 16", "moments 16"},
      {{"RMSNormalization", "f2x3x4 f4 -> f2x3x4"}, "scale 24", "scale 24"},
      {{"InstanceNormalization", "f2x3x4 f3 f3 -> f2x3x4"}, "moments 48", "moments 48"},
      {{"GroupNormalization", "f2x6x4 f6 f6 -> f2x6x4", "num_groups=3"},
       "moments 48",
       "moments 48"},
      {{"MaxPool", "f1x1x4x4 -> f1x1x2x2"}, "indices 16", "indices 32"},
      {{"MaxPool", "f1x1x4x4 -> f1x1x2x2 i1x1x2x2"}, "", ""},
      {{"TopK", "f5 i1=[2] -> f2 _"}, "indices 16", "indices 16"},
      {{"TopK", "f5 i1=[2] -> f2 i2"}, "", ""},
      {{"Dropout", "f2x3 -> f2x3"}, "", "mask 24"},
      {{"LSTM", "f7x3x5 f2x16x5 f2x16x4 -> f7x2x3x4"}, "reserve 3360", "reserve 3360"},
      {{"LSTM", "f7x3x5 f2x16x5 f2x16x4 -> _ f2x3x4"}, "reserve 4032", "reserve 4032"},
      {{"GRU", "f7x3x5 f2x12x5 f2x12x4 -> f7x2x3x4"}, "reserve 2688", "reserve 2688"},
      {{"RNN", "f7x3x5 f2x4x5 f2x4x4 -> f7x2x3x4"}, "", ""},
      {{"RNN", "f7x3x5 f2x4x5 f2x4x4 -> _ f2x3x4"}, "reserve 672", "reserve 672"},
      {{"Attention", "f2x3x10x16 f2x3x12x16 f2x3x12x8 -> f2x3x10x8"},
       "probabilities 2880",
       "logsumexp 240"},
      {{"FusedAttention", "f2x10x48 f2x12x48 f2x12x24 -> f2x10x24",
        "batch=2 heads=3 key_heads=3 queries=10 keys=12 size=16 value_size=8 q_axes='bshd' "
        "k_axes='bshd' v_axes='bshd' y_axes='bshd'"},
       "logsumexp 240",
       "logsumexp 240"},
  };
  for (const Row& row : rows) {
    const OpSpec spec = reference::SpecOfCase(row.op);
    CAPTURE(spec.type);
    CAPTURE(std::string(row.op.operands));
    CHECK(Saved(spec) == row.minimal);
    CHECK(Saved(spec, Autograd::kTorch) == row.torch);
    // On a GPU a mask has one byte per element; the rest is as on the CPU.
    const bool is_dropout = spec.type == "Dropout";
    CHECK(Saved(spec, Autograd::kTorchCuda) == (is_dropout ? "mask 6" : row.torch));
  }
}

TEST_CASE("statistics: gates and probabilities are counted in the type that they are saved in") {
  OpSpec spec = reference::SpecOfCase({"GRU", "f7x3x5 f2x12x5 f2x12x4 -> f7x2x3x4"});
  spec.saved_type = TensorType::kFloat16;
  CHECK(Saved(spec) == "reserve 1344");
  spec.saved_type = TensorType::kInt4;
  CHECK(Saved(spec) == "reserve 672");
}

TEST_CASE("statistics: a stored output of indices serves as the statistic") {
  const OpSpec spec = reference::SpecOfCase({"MaxPool", "f1x1x4x4 -> f1x1x2x2 i1x1x2x2"});
  CHECK(OutputServesAsStatistic(spec));
  CHECK(StatisticOf(spec, Autograd::kMinimal, {true, false})->bytes == Bytes(16));
  CHECK_FALSE(OutputServesAsStatistic(reference::SpecOfCase({"MaxPool", "f1x1x4x4 -> f1x1x2x2"})));
  CHECK_FALSE(OutputServesAsStatistic(reference::SpecOfCase({"Dropout", "f2 -> f2 b2"})));
}

}  // namespace

}  // namespace ckplan
