#include "lib/reference/contract.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>

namespace ckplan::reference {

namespace {

constexpr ContractRow kRows[] = {
    {"Relu", "Y", true},
    {"LeakyRelu", "Y", true},
    {"Sigmoid", "Y", true},
    {"Tanh", "Y", true},
    {"Elu", "Y", true},
    {"Selu", "Y", true},
    {"Celu", "Y", true},
    {"Exp", "Y", true},
    {"Sqrt", "Y", true},
    {"Reciprocal", "Y", true},
    {"Tan", "Y", true},
    {"Softplus", "X", true},
    {"Softsign", "X", true},
    {"Gelu", "X", true},
    {"Swish", "X", true},
    {"Mish", "X", true},
    {"HardSwish", "X", true},
    {"HardSigmoid", "X", true},
    {"ThresholdedRelu", "X", true},
    {"Shrink", "X", true},
    {"Log", "X", true},
    {"Abs", "X", true},
    {"Clip", "X", true},
    {"Erf", "X", true},
    {"Sin", "X", true},
    {"Cos", "X", true},
    {"Asin", "X", true},
    {"Acos", "X", true},
    {"Atan", "X", true},
    {"Sinh", "X", true},
    {"Cosh", "X", true},
    {"Asinh", "X", true},
    {"Acosh", "X", true},
    {"Atanh", "X", true},
    {"Neg", "0", true},
    {"Add", "0", true},
    {"Sum", "0", true},
    {"Sub", "0", true},
    {"Mean", "0", true},
    {"Mul", "P", true},
    {"Div", "D", true},
    {"Pow", "D", true},
    {"Max", "V", true},
    {"Min", "V", true},
    {"PRelu", "X | P", true},
    {"Where", "I", true},
    {"Mod", "V", true},
    {"Dropout", "0", true},
    {"Conv", "P"},
    {"ConvTranspose", "P"},
    {"Gemm", "P"},
    {"MatMul", "P"},
    {"Einsum", "P"},
    {"Attention", "V | S"},
    {"LSTM", "V | Y | S"},
    {"GRU", "V | Y | S"},
    {"BatchNormalization", "X | S"},
    {"LayerNormalization", "X | S"},
    {"RMSNormalization", "X | S"},
    {"InstanceNormalization", "X | S"},
    {"GroupNormalization", "X | S"},
    {"MeanVarianceNormalization", "X"},
    {"LRN", "X | Y"},
    {"SoftmaxCrossEntropyLoss", "X | I"},
    {"NegativeLogLikelihoodLoss", "I"},
    {"Softmax", "Y"},
    {"LogSoftmax", "Y"},
    {"MaxPool", "S"},
    {"GlobalMaxPool", "S"},
    {"AveragePool", "0"},
    {"GlobalAveragePool", "0"},
    {"ReduceSum", "0"},
    {"ReduceMean", "0"},
    {"ReduceMax", "X | Y"},
    {"ReduceMin", "X | Y"},
    {"ReduceProd", "X | Y"},
    {"ReduceL1", "X"},
    {"ReduceL2", "X | Y"},
    {"ReduceSumSquare", "X"},
    {"ReduceLogSum", "Y"},
    {"ReduceLogSumExp", "X | Y"},
    {"CumSum", "0"},
    {"TopK", "S"},
    {"LpNormalization", "X | Y"},
    {"GlobalLpPool", "X | Y"},
    {"ReverseSequence", "I"},
    {"Identity", "0"},
    {"Reshape", "0"},
    {"Flatten", "0"},
    {"Squeeze", "0"},
    {"Unsqueeze", "0"},
    {"Cast", "0"},
    {"CastLike", "0"},
    {"Transpose", "0"},
    {"Slice", "0"},
    {"Split", "0"},
    {"Concat", "0"},
    {"Expand", "0"},
    {"Tile", "0"},
    {"Pad", "0"},
    {"DepthToSpace", "0"},
    {"SpaceToDepth", "0"},
    {"Trilu", "0"},
    {"CenterCropPad", "0"},
    {"Gather", "I"},
    {"GatherElements", "I"},
    {"GatherND", "I"},
    {"Scatter", "I"},
    {"ScatterElements", "I"},
    {"ScatterND", "I"},
    {"Resize", "0"},
    {"Upsample", "0"},
    {"RotaryEmbedding", "P"},
};

constexpr std::string_view kElementwiseWithoutGradient[] = {"Sign",
                                                            "Floor",
                                                            "Ceil",
                                                            "Round",
                                                            "Not",
                                                            "And",
                                                            "Or",
                                                            "Xor",
                                                            "Less",
                                                            "Equal",
                                                            "Greater",
                                                            "LessOrEqual",
                                                            "GreaterOrEqual",
                                                            "IsNaN",
                                                            "IsInf",
                                                            "BitwiseAnd",
                                                            "BitwiseOr",
                                                            "BitwiseXor"};

bool IsOneOf(std::string_view type, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), type) != list.end();
}

// The operators whose gradient goes to the first input alone, whatever float inputs they have.
bool HasOneDifferentiableInput(std::string_view type) {
  return IsOneOf(
      type, {"Resize", "Upsample", "Clip", "Pad", "RotaryEmbedding", "Dropout", "CastLike",
             "Reshape", "Expand", "Tile", "SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"});
}

bool Has(std::string_view letters, char letter) {
  return letters.find(letter) != std::string_view::npos;
}

void Read(OpSpec& spec, size_t input) {
  if (input < spec.inputs.size() && spec.inputs[input].is_present) {
    spec.inputs[input].is_read_by_backward = true;
  }
}

void ReadByType(OpSpec& spec, bool floats) {
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    const bool is_mask = spec.type == "Attention" && i == 3;
    const bool is_float = spec.inputs[i].type == ElementType::kFloat32;
    if (is_float == floats && !(floats && is_mask)) Read(spec, i);
  }
}

void ReadPartners(OpSpec& spec, const std::vector<bool>& wants) {
  const bool has_many = IsOneOf(spec.type, {"Einsum", "RotaryEmbedding"});
  const size_t count = has_many ? wants.size() : std::min<size_t>(2, wants.size());
  for (size_t i = 0; i < count; ++i) {
    for (size_t other = 0; other < count; ++other) {
      if (other != i && wants[other]) Read(spec, i);
    }
  }
}

// y = a / b: da = g / b, db = -g y / b. y = a ^ b: da = g b a^(b-1), db = g y log a.
void ReadSpecial(OpSpec& spec, const std::vector<bool>& wants) {
  Read(spec, 1);
  if (spec.type == "Pow") Read(spec, 0);
  if (wants[1]) spec.outputs[0].is_read_by_backward = true;
}

int64_t Product(const std::vector<int64_t>& dims, size_t begin, size_t end) {
  return std::accumulate(dims.begin() + static_cast<std::ptrdiff_t>(begin),
                         dims.begin() + static_cast<std::ptrdiff_t>(end), int64_t{1},
                         std::multiplies<>());
}

int64_t NormalisedRows(const OpSpec& spec) {
  const std::vector<int64_t>& dims = spec.inputs[0].dims;
  int64_t axis = spec.Int("axis", -1);
  if (axis < 0) axis += static_cast<int64_t>(dims.size());
  return Product(dims, 0, static_cast<size_t>(axis));
}

// Gates and cell of each direction, step and sample, and the state where Y does not hold it.
int64_t ReserveBytes(const OpSpec& spec) {
  const std::vector<int64_t>& x = spec.inputs[0].dims;
  const std::vector<int64_t>& recurrence = spec.inputs[2].dims;
  const int64_t saved = spec.type == "LSTM" ? 5 : 4;
  const int64_t vectors = saved + (spec.output(0).is_present ? 0 : 1);
  return 4 * recurrence[0] * x[0] * x[1] * recurrence[2] * vectors;
}

// Probabilities: batch, heads, queries, keys.
int64_t AttentionBytes(const OpSpec& spec) {
  const std::vector<int64_t>& q = spec.inputs[0].dims;
  const std::vector<int64_t>& k = spec.inputs[1].dims;
  const bool is_split = q.size() == 4;
  const int64_t heads = is_split ? q[1] : spec.Int("q_num_heads", 1);
  const int64_t queries = is_split ? q[2] : q[1];
  int64_t keys = is_split ? k[2] : k[1];
  if (spec.input(4).is_present) keys += spec.inputs[4].dims[2];
  return 4 * q[0] * heads * queries * keys;
}

int64_t StatisticBytes(const OpSpec& spec) {
  const std::vector<int64_t>& x = spec.inputs[0].dims;
  if (spec.type == "BatchNormalization") return 8 * (x.size() > 1 ? x[1] : 1);
  if (spec.type == "LayerNormalization") return 8 * NormalisedRows(spec);
  if (spec.type == "RMSNormalization") return 4 * NormalisedRows(spec);
  if (spec.type == "InstanceNormalization") return 8 * x[0] * x[1];
  if (spec.type == "GroupNormalization") return 8 * x[0] * spec.Int("num_groups", 1);
  if (IsOneOf(spec.type, {"MaxPool", "GlobalMaxPool"})) {
    return spec.output(1).is_present ? 0 : 4 * spec.outputs[0].elements();
  }
  if (spec.type == "TopK") return spec.output(1).is_present ? 0 : 8 * spec.outputs[0].elements();
  if (spec.type == "Attention") return AttentionBytes(spec);
  return ReserveBytes(spec);
}

}  // namespace

const ContractRow* FindContract(std::string_view type) {
  const auto found = std::find_if(std::begin(kRows), std::end(kRows),
                                  [type](const ContractRow& row) { return row.type == type; });
  return found == std::end(kRows) ? nullptr : found;
}

int CountContracts() { return static_cast<int>(std::size(kRows)); }

bool IsElementwise(std::string_view type) {
  if (const ContractRow* row = FindContract(type); row != nullptr) return row->is_elementwise;
  return std::find(std::begin(kElementwiseWithoutGradient), std::end(kElementwiseWithoutGradient),
                   type) != std::end(kElementwiseWithoutGradient);
}

bool IsDifferentiable(const OpSpec& spec, size_t input) {
  const Operand& operand = spec.input(input);
  if (!operand.is_present || operand.type != ElementType::kFloat32) return false;
  if (FindContract(spec.type) == nullptr) return false;
  if (spec.type == "BatchNormalization") return input < 3;
  return input == 0 || !HasOneDifferentiableInput(spec.type);
}

void ApplyContract(OpSpec& spec, const std::vector<bool>& wants,
                   const std::vector<bool>& is_constant, const std::vector<bool>& arrives) {
  const ContractRow* row = FindContract(spec.type);
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    spec.inputs[i].has_gradient = wants[i];
    spec.inputs[i].is_read_by_backward = is_constant[i] && spec.inputs[i].is_present;
  }
  for (size_t i = 0; i < spec.outputs.size(); ++i) {
    spec.outputs[i].has_gradient = arrives[i];
    spec.outputs[i].is_read_by_backward = false;
  }
  spec.statistic_bytes = 0;
  if (row == nullptr || std::find(wants.begin(), wants.end(), true) == wants.end()) return;
  if (Has(row->letters, 'X')) Read(spec, 0);
  if (Has(row->letters, 'V')) ReadByType(spec, true);
  if (Has(row->letters, 'I')) ReadByType(spec, false);
  if (Has(row->letters, 'P')) ReadPartners(spec, wants);
  if (Has(row->letters, 'D')) ReadSpecial(spec, wants);
  if (Has(row->letters, 'Y') && spec.outputs[0].is_present) {
    spec.outputs[0].is_read_by_backward = true;
  }
  if (!Has(row->letters, 'S')) return;
  spec.statistic_bytes = StatisticBytes(spec);
  if (spec.statistic_bytes == 0) spec.outputs[1].is_read_by_backward = true;
}

}  // namespace ckplan::reference
