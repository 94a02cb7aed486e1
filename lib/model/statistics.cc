#include "lib/model/statistics.h"

#include <algorithm>

#include "lib/model/activation_type.h"
#include "lib/model/op_shapes.h"

namespace ckplan {

namespace {

constexpr int64_t kMomentBytes = 8;  // A float mean and a float inverse deviation.
constexpr int64_t kScaleBytes = 4;

int64_t DimAt(const Value& value, size_t axis) {
  return axis < value.dims.size() ? value.dims[axis] : 1;
}

// Rows that a normalisation from `axis` to the end treats apart.
int64_t NormalisedRows(const Value& input, const onnx::NodeProto& node) {
  const auto rank = static_cast<int64_t>(input.dims.size());
  int64_t axis = IntAttribute(node, "axis", -1);
  if (axis < 0) axis += rank;
  axis = std::clamp<int64_t>(axis, 0, rank);
  int64_t rows = 1;
  for (size_t i = 0; i < static_cast<size_t>(axis); ++i) {
    rows = SaturatingProduct({rows, input.dims[i]});
  }
  return rows;
}

// For each direction, step and sample: the activated gates and the cell (LSTM: 4 + 1 vectors of
// the hidden size; GRU: 3 gates and the recurrent part of the candidate; RNN: none), and the hidden
// state itself where the operation's output of all of them, Y, does not exist.
int64_t ReserveBytes(const Model::Impl& model, const Operation& operation, bool has_all_states) {
  const RecurrentShape shape = ReadRecurrent(model, operation);
  const int64_t saved = operation.type() == "LSTM" ? 5 : operation.type() == "GRU" ? 4 : 0;
  const int64_t vectors = saved + (has_all_states ? 0 : 1);
  return SaturatingProduct({shape.directions, shape.steps, shape.batch, shape.hidden, vectors,
                            SavedElementBytes(model, operation)});
}

int64_t AttentionBytes(const Model::Impl& model, const Operation& operation, Autograd autograd) {
  const AttentionShape shape = ReadAttention(model, operation);
  if (autograd == Autograd::kTorch) {
    return SaturatingProduct({shape.batch, shape.heads, shape.queries, kScaleBytes});
  }
  return SaturatingProduct(
      {shape.batch, shape.heads, shape.queries, shape.keys, SavedElementBytes(model, operation)});
}

}  // namespace

std::optional<SavedStatistic> StatisticOf(const Model::Impl& model, const Operation& operation,
                                          const OpRule& rule, Autograd autograd,
                                          const std::vector<bool>& is_used) {
  if (rule.statistic == Statistic::kNone || operation.input(0) == kNoValue) return std::nullopt;
  const Value& x = model.value(operation.inputs[0]);
  const Value& y =
      model.value(operation.output(0) == kNoValue ? operation.inputs[0] : operation.outputs[0]);
  const auto is_tensor = [&is_used](size_t i) { return i < is_used.size() && is_used[i]; };
  const auto saved = [](std::string_view suffix, int64_t bytes) -> std::optional<SavedStatistic> {
    if (bytes == 0) return std::nullopt;
    return SavedStatistic{suffix, Bytes(bytes)};
  };
  switch (rule.statistic) {
    case Statistic::kNone:
      return std::nullopt;
    case Statistic::kChannelMoments:
      return saved("moments", SaturatingProduct({kMomentBytes, DimAt(x, 1)}));
    case Statistic::kRowMoments:
      return saved("moments",
                   SaturatingProduct({kMomentBytes, NormalisedRows(x, *operation.node)}));
    case Statistic::kRowScale:
      return saved("scale", SaturatingProduct({kScaleBytes, NormalisedRows(x, *operation.node)}));
    case Statistic::kInstanceMoments:
      return saved("moments", SaturatingProduct({kMomentBytes, DimAt(x, 0), DimAt(x, 1)}));
    case Statistic::kGroupMoments:
      return saved("moments", SaturatingProduct({kMomentBytes, DimAt(x, 0),
                                                 IntAttribute(*operation.node, "num_groups", 1)}));
    case Statistic::kPoolIndices:
      if (is_tensor(1)) return std::nullopt;
      return saved("indices",
                   SaturatingProduct({autograd == Autograd::kTorch ? 8 : 4, ElementsOf(y)}));
    case Statistic::kTopIndices:
      if (is_tensor(1)) return std::nullopt;
      return saved("indices", SaturatingProduct({8, ElementsOf(y)}));
    case Statistic::kDropoutMask:
      if (autograd != Autograd::kTorch) return std::nullopt;
      return saved("mask", y.bytes.count());
    case Statistic::kRnnReserve:
      return saved("reserve", ReserveBytes(model, operation, is_tensor(0)));
    case Statistic::kAttention:
      return saved(autograd == Autograd::kTorch ? "logsumexp" : "probabilities",
                   AttentionBytes(model, operation, autograd));
  }
  return std::nullopt;
}

}  // namespace ckplan
