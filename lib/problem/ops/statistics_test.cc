#include "lib/problem/ops/statistics.h"

#include <doctest/doctest.h>

#include <string>

#include "lib/executor/reference/gradient_roles.h"

namespace ckplan {
namespace {

// Writes the statistic as "moments 24", or as "" if nothing is saved. All outputs that are present
// are stored.
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
    // On a GPU a mask has one byte for each element; all else is as on the CPU.
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
