#include "lib/files/model/decompose.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "onnx/defs/schema.h"

namespace ckplan {

namespace {

using Maker = DecompositionBuilder;

constexpr double kNormEpsilon = 1e-5;
constexpr double kSkipNormEpsilon = 1e-12;

double Epsilon(const Maker& m, double otherwise) {
  return FloatAttribute(m.node(), "epsilon", otherwise);
}

// ---- Activations ----

bool MakeGelu(Maker& m) {
  if (!m.HasInput(0)) return false;
  m.Finish("Gelu", {m.Operand(0)});
  return true;
}

std::string WithBias(Maker& m, const std::string& value, size_t bias) {
  return m.Operand(bias).empty() ? value : m.Do("Add", {value, m.Operand(bias)}, "biased");
}

bool MakeBiasGelu(Maker& m) {
  if (!m.HasInput(0)) return false;
  m.Finish("Gelu", {WithBias(m, m.Operand(0), 1)});
  return true;
}

bool MakeFastGelu(Maker& m) {
  if (!m.HasInput(0)) return false;
  m.Finish("Gelu", {WithBias(m, m.Operand(0), 1)}, {Maker::Text("approximate", "tanh")});
  return true;
}

bool MakeQuickGelu(Maker& m) {
  if (!m.HasInput(0)) return false;
  constexpr double kAlpha = 1.702;
  m.Finish("Swish", {m.Operand(0)},
           {Maker::Float("alpha", FloatAttribute(m.node(), "alpha", kAlpha))});
  return true;
}

bool MakeBiasSplitGelu(Maker& m) {
  if (!m.HasInput(0)) return false;
  const auto halves = m.DoSeveral("Split", {WithBias(m, m.Operand(0), 1)}, {"left", "right"},
                                  {Maker::Int("axis", -1), Maker::Int("num_outputs", 2)});
  m.Finish("Mul", {halves[0], m.Do("Gelu", {halves[1]}, "gelu")});
  return true;
}

// An activation fused into a product, with its parameters.
struct Fused {
  std::string type;
  double alpha = 0;
  double beta = 0;
};

Fused FusedActivation(const Maker& m) {
  Fused fused{StringAttribute(m.node(), "activation", ""),
              FloatAttribute(m.node(), "activation_alpha", 0),
              FloatAttribute(m.node(), "activation_beta", 0)};
  const onnx::AttributeProto* numbers = FindAttribute(m.node(), "activation_params");
  if (numbers != nullptr && numbers->floats_size() > 0) fused.alpha = numbers->floats(0);
  if (numbers != nullptr && numbers->floats_size() > 1) fused.beta = numbers->floats(1);
  return fused;
}

// Finishes with the product, or with its fused activation.
bool FinishProduct(Maker& m, const char* op, std::vector<std::string> inputs,
                   Maker::Attributes attributes, const std::string& added = "") {
  const Fused fused = FusedActivation(m);
  if (fused.type.empty() && added.empty()) {
    m.Finish(op, std::move(inputs), std::move(attributes));
    return true;
  }
  std::string value = m.Do(op, std::move(inputs), "product", std::move(attributes));
  if (fused.type.empty()) {
    m.Finish("Add", {value, added});
    return true;
  }
  if (!added.empty()) value = m.Do("Add", {value, added}, "sum");
  if (fused.type == "Relu" || fused.type == "Tanh" || fused.type == "Sigmoid") {
    m.Finish(fused.type.c_str(), {value});
  } else if (fused.type == "LeakyRelu") {
    m.Finish("LeakyRelu", {value}, {Maker::Float("alpha", fused.alpha)});
  } else if (fused.type == "HardSigmoid") {
    m.Finish("HardSigmoid", {value},
             {Maker::Float("alpha", fused.alpha), Maker::Float("beta", fused.beta)});
  } else if (fused.type == "Clip") {
    m.Finish("Clip", {value, m.Number(fused.alpha, 0, "least"), m.Number(fused.beta, 0, "most")});
  } else {
    return false;
  }
  return true;
}

// ---- Products ----

// Returns the operand as the product reads it. With transBatch, the first axis moves to the
// second-to-last place.
std::string Transposed(Maker& m, size_t input, const char* swaps, const char* moves_batch,
                       const std::string& what) {
  const size_t rank = m.DimsOf(input).size();
  std::vector<int64_t> order;
  for (size_t i = 0; i < rank; ++i) order.push_back(static_cast<int64_t>(i));
  if (rank >= 2 && IntAttribute(m.node(), moves_batch, 0) != 0) {
    std::rotate(order.begin(), order.begin() + 1, order.end() - 1);
  }
  if (rank >= 2 && IntAttribute(m.node(), swaps, 0) != 0) {
    std::swap(order[rank - 1], order[rank - 2]);
  }
  if (std::is_sorted(order.begin(), order.end())) return m.Operand(input);
  return m.Do("Transpose", {m.Operand(input)}, what, {Maker::IntList("perm", order)});
}

bool MakeFusedMatMul(Maker& m) {
  if (!m.HasInput(0) || !m.HasInput(1)) return false;
  if (FindAttribute(m.node(), "activation_axis") != nullptr) return false;
  const double alpha = FloatAttribute(m.node(), "alpha", 1);
  const std::string left = Transposed(m, 0, "transA", "transBatchA", "left");
  const std::string right = Transposed(m, 1, "transB", "transBatchB", "right");
  if (alpha == 1) return FinishProduct(m, "MatMul", {left, right}, {});
  const std::string product = m.Do("MatMul", {left, right}, "unscaled");
  return FinishProduct(m, "Mul", {product, m.Number(alpha, 0, "alpha")}, {});
}

bool MakeFusedGemm(Maker& m) {
  if (!m.HasInput(0) || !m.HasInput(1)) return false;
  Maker::Attributes attributes;
  for (const char* name : {"alpha", "beta", "transA", "transB"}) m.Copy(name, &attributes);
  return FinishProduct(m, "Gemm", {m.Operand(0), m.Operand(1), m.Operand(2)}, attributes);
}

bool MakeFusedConv(Maker& m) {
  if (!m.HasInput(0) || !m.HasInput(1)) return false;
  Maker::Attributes attributes;
  for (const char* name : {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}) {
    m.Copy(name, &attributes);
  }
  return FinishProduct(m, "Conv", {m.Operand(0), m.Operand(1), m.Operand(2)}, attributes,
                       m.Operand(3));
}

// ---- Normalisations ----

void FinishLayerNorm(Maker& m, const std::string& value, const std::string& scale,
                     const std::string& shift, double epsilon) {
  m.Finish("LayerNormalization", {value, scale, shift},
           {Maker::Int("axis", -1), Maker::Float("epsilon", epsilon)}, 3);
}

bool MakeSkipLayerNorm(Maker& m) {
  if (!m.HasInput(0) || !m.HasInput(1) || !m.HasInput(2)) return false;
  std::string sum = m.Do("Add", {m.Operand(0), m.Operand(1)}, "sum");
  sum = WithBias(m, sum, 4);
  FinishLayerNorm(m, sum, m.Operand(2), m.Operand(3), Epsilon(m, kSkipNormEpsilon));
  m.Output(3, sum);
  return true;
}

// Further outputs: the inverse root of the mean square.
void AddInverseRoot(Maker& m, size_t output, const std::string& value, int64_t axis) {
  if (!m.HasOutput(output)) return;
  const std::string squares = m.Do("Mul", {value, value}, "squares");
  const std::string mean = m.Do("ReduceMean", {squares, m.Ints({axis}, "axes")}, "mean_square");
  m.Output(output, m.Do("Reciprocal", {m.Do("Sqrt", {mean}, "root")}, "inverse"));
}

bool MakeSkipRmsNorm(Maker& m) {
  if (!m.HasInput(0) || !m.HasInput(1) || !m.HasInput(2)) return false;
  std::string sum = m.Do("Add", {m.Operand(0), m.Operand(1)}, "sum");
  sum = WithBias(m, sum, 3);
  m.Finish("RMSNormalization", {sum, m.Operand(2)},
           {Maker::Int("axis", -1), Maker::Float("epsilon", Epsilon(m, kSkipNormEpsilon))});
  AddInverseRoot(m, 2, sum, -1);
  m.Output(3, sum);
  return !m.HasOutput(1);
}

bool MakeRmsNorm(Maker& m) {
  if (!m.HasInput(0) || !m.HasInput(1)) return false;
  const int64_t axis = IntAttribute(m.node(), "axis", -1);
  m.Finish("RMSNormalization", {m.Operand(0), m.Operand(1)},
           {Maker::Int("axis", axis), Maker::Float("epsilon", Epsilon(m, kNormEpsilon))});
  AddInverseRoot(m, 1, m.Operand(0), axis);
  return true;
}

// In a QEmbedLayerNormalization tables, scale and shift are quantized.
bool MakeEmbedLayerNorm(Maker& m) {
  constexpr size_t kIds = 0, kSegments = 1, kWords = 2, kPositions = 3, kSegmentTable = 4;
  constexpr size_t kGamma = 5, kBeta = 6, kMask = 7, kPositionIds = 8;
  if (!m.HasInput(kIds) || !m.HasInput(kWords) || !m.HasInput(kPositions) ||
      m.DimsOf(kIds).size() != 2) {
    return false;
  }
  const bool is_quantized = m.node().op_type().starts_with('Q');
  const auto floats = [&](size_t input, const char* what) {
    constexpr size_t kToScale = 6, kToZero = 11;
    if (!is_quantized) return m.Operand(input);
    return m.Do("DequantizeLinear",
                {m.Operand(input), m.Operand(input + kToScale), m.Operand(input + kToZero)}, what);
  };
  std::string sum = m.Do("Gather", {floats(kWords, "word_table"), m.Operand(kIds)}, "words");
  std::string places = floats(kPositions, "position_table");
  if (!is_quantized && m.HasInput(kPositionIds)) {
    places = m.Do("Gather", {places, m.Operand(kPositionIds)}, "positions");
  } else {
    places = m.Do(
        "Slice",
        {places, m.Ints({0}, "begin"), m.Ints({m.DimsOf(kIds)[1]}, "end"), m.Ints({0}, "axis")},
        "positions");
  }
  sum = m.Do("Add", {sum, places}, "placed");
  if (m.HasInput(kSegments) && m.HasInput(kSegmentTable)) {
    const std::string segments =
        m.Do("Gather", {floats(kSegmentTable, "segment_table"), m.Operand(kSegments)}, "segments");
    sum = m.Do("Add", {sum, segments}, "embedded");
  }
  m.Finish("LayerNormalization", {sum, floats(kGamma, "scale"), floats(kBeta, "shift")},
           {Maker::Int("axis", -1), Maker::Float("epsilon", Epsilon(m, kSkipNormEpsilon))});
  if (m.HasOutput(1) && m.HasInput(kMask)) {
    m.Output(1, m.Do("ReduceSum", {m.Operand(kMask), m.Ints({1}, "mask_axis")}, "mask_index",
                     {Maker::Int("keepdims", 0)}));
  } else if (m.HasOutput(1)) {
    const int64_t batch = m.DimsOf(kIds)[0];
    if (batch > kMaxFoldedElements) return false;
    m.Output(1, m.Constant({onnx::TensorProto::INT32,
                            {batch},
                            std::vector<int64_t>(static_cast<size_t>(batch), 0),
                            {}},
                           "mask_index"));
  }
  m.Output(2, sum);
  return true;
}

// ---- Others ----

bool MakeBiasSoftmax(Maker& m) {
  if (!m.HasInput(0)) return false;
  Maker::Attributes attributes;
  m.Copy("axis", &attributes);
  m.Finish("Softmax", {WithBias(m, m.Operand(0), 1)}, attributes);
  return true;
}

// PyTorch's cross_entropy with probabilities instead of labels, which its exporter writes as the
// operator for labels: -sum(p log_softmax(x)), for each sample.
bool MakeSoftLabels(Maker& m) {
  const bool is_like_scores = m.HasInput(0) && m.HasInput(1) && m.DimsOf(0) == m.DimsOf(1);
  if (!is_like_scores || !IsFloatType(m.TypeOf(1)) || m.DimsOf(0).size() < 2) return false;
  if (m.HasInput(2)) return false;
  const std::string reduction = StringAttribute(m.node(), "reduction", "mean");
  const std::string logs =
      m.Do("LogSoftmax", {m.Operand(0)}, "log_softmax", {Maker::Int("axis", 1)});
  const std::string product = m.Do("Mul", {logs, m.Operand(1)}, "weighted");
  const Maker::Attributes whole = {Maker::Int("keepdims", 0)};
  m.Output(1, logs);
  if (reduction == "none") {
    m.Finish("Neg", {m.Do("ReduceSum", {product, m.Ints({1}, "axis")}, "sum", whole)});
    return true;
  }
  const std::string sum = m.Do("ReduceSum", {product}, "sum", whole);
  if (reduction == "sum") {
    m.Finish("Neg", {sum});
    return true;
  }
  int64_t samples = m.DimsOf(0)[0];
  for (size_t i = 2; i < m.DimsOf(0).size(); ++i) samples *= m.DimsOf(0)[i];
  const std::string negative = m.Do("Neg", {sum}, "negative");
  m.Finish("Div", {negative, m.Number(static_cast<double>(samples), 0, "samples")});
  return true;
}

bool MakeBiasAdd(Maker& m) {
  if (!m.HasInput(0)) return false;
  m.Finish("Add", {WithBias(m, m.Operand(0), 1), m.Operand(2)});
  return m.HasInput(2);
}

bool MakeBiasDropout(Maker& m) {
  if (!m.HasInput(0)) return false;
  constexpr size_t kResidual = 2, kRatio = 3, kMode = 4;
  const std::string biased = WithBias(m, m.Operand(0), 1);
  const std::vector<std::string> inputs = {biased, m.Operand(kRatio), m.Operand(kMode)};
  if (m.Operand(kResidual).empty()) {
    m.Finish("Dropout", inputs, {}, 2);
    return true;
  }
  const auto dropped = m.DoSeveral("Dropout", inputs, {"dropped", "mask"});
  m.Finish("Add", {dropped[0], m.Operand(kResidual)});
  m.Output(1, dropped[1]);
  return true;
}

bool MakeTorchEmbedding(Maker& m) {
  if (!m.HasInput(0) || !m.HasInput(1)) return false;
  m.Finish("Gather", {m.Operand(0), m.Operand(1)});
  return true;
}

// Its indices apply to the last axis, and are a list in any shape.
bool MakeArrayFeatureExtractor(Maker& m) {
  if (!m.HasInput(0) || !m.HasInput(1) || m.DimsOf(0).empty()) return false;
  const std::string rows = m.DimsOf(0).size() == 1
                               ? m.Do("Unsqueeze", {m.Operand(0), m.Ints({0}, "axis")}, "row")
                               : m.Operand(0);
  const std::string places = m.Do("Reshape", {m.Operand(1), m.Ints({-1}, "flat")}, "places");
  m.Finish("Gather", {rows, places}, {Maker::Int("axis", -1)});
  return true;
}

// ---- Blocked layouts ----

// Operators of com.microsoft.nchwc store channels in blocks: the same elements in a different
// order.

bool MakeUnblockedPool(Maker& m) {
  if (!m.HasInput(0)) return false;
  Maker::Attributes attributes;
  for (const char* name : {"auto_pad", "ceil_mode", "count_include_pad", "dilations",
                           "kernel_shape", "pads", "strides"}) {
    m.Copy(name, &attributes);
  }
  m.Finish(m.node().op_type().c_str(), {m.Operand(0)}, attributes);
  return true;
}

bool MakeReorderInput(Maker& m) {
  if (!m.HasInput(0) || IntAttribute(m.node(), "channels_last", 0) != 0) return false;
  m.Finish("Identity", {m.Operand(0)});
  return true;
}

// Channels that only pad the last block are dropped.
bool MakeReorderOutput(Maker& m) {
  if (!m.HasInput(0) || m.DimsOf(0).size() < 2) return false;
  const int64_t channels = IntAttribute(m.node(), "channels", m.DimsOf(0)[1]);
  if (IntAttribute(m.node(), "channels_last", 0) != 0) return false;
  m.Finish("Slice",
           {m.Operand(0), m.Ints({0}, "begin"), m.Ints({channels}, "end"), m.Ints({1}, "axis")});
  return true;
}

// ---- The table ----

struct DecompositionRow {
  std::string_view type;
  bool (*make)(Maker&);  // Returns false if this use is unsupported.
};

constexpr DecompositionRow kRows[] = {{"Attention", MakeAttention},
                                      {"BiasAdd", MakeBiasAdd},
                                      {"BiasDropout", MakeBiasDropout},
                                      {"BiasGelu", MakeBiasGelu},
                                      {"BiasSoftmax", MakeBiasSoftmax},
                                      {"BiasSplitGelu", MakeBiasSplitGelu},
                                      {"EmbedLayerNormalization", MakeEmbedLayerNorm},
                                      {"FastGelu", MakeFastGelu},
                                      {"FusedConv", MakeFusedConv},
                                      {"FusedGemm", MakeFusedGemm},
                                      {"FusedMatMul", MakeFusedMatMul},
                                      {"Gelu", MakeGelu},
                                      {"GroupQueryAttention", MakeGroupQueryAttention},
                                      {"MultiHeadAttention", MakeMultiHeadAttention},
                                      {"QAttention", MakeAttention},
                                      {"QEmbedLayerNormalization", MakeEmbedLayerNorm},
                                      {"QuickGelu", MakeQuickGelu},
                                      {"RotaryEmbedding", MakeRotaryEmbedding},
                                      {"SimplifiedLayerNormalization", MakeRmsNorm},
                                      {"SkipLayerNormalization", MakeSkipLayerNorm},
                                      {"SkipSimplifiedLayerNormalization", MakeSkipRmsNorm},
                                      {"SoftmaxCrossEntropyLoss", MakeSoftLabels},
                                      {"TorchEmbedding", MakeTorchEmbedding},
                                      {"TransposeMatMul", MakeFusedMatMul}};

constexpr DecompositionRow kBlockedRows[] = {
    {"AveragePool", MakeUnblockedPool},       {"Conv", MakeFusedConv},
    {"GlobalAveragePool", MakeUnblockedPool}, {"GlobalMaxPool", MakeUnblockedPool},
    {"MaxPool", MakeUnblockedPool},           {"ReorderInput", MakeReorderInput},
    {"ReorderOutput", MakeReorderOutput}};

constexpr DecompositionRow kMachineLearningRows[] = {
    {"ArrayFeatureExtractor", MakeArrayFeatureExtractor}};

const DecompositionRow* RowOf(std::span<const DecompositionRow> rows, const std::string& type) {
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const DecompositionRow& row) { return row.type == type; });
  return found == rows.end() ? nullptr : &*found;
}

const DecompositionRow* RowOf(const onnx::NodeProto& node) {
  if (node.domain() == "com.microsoft.nchwc") return RowOf(kBlockedRows, node.op_type());
  if (node.domain() == "ai.onnx.ml") return RowOf(kMachineLearningRows, node.op_type());
  // ONNX Runtime also wrote the first of these operators into ONNX's own domain.
  const bool is_listed = !IsStandard(node) || node.op_type() == "SimplifiedLayerNormalization" ||
                         node.op_type() == "SoftmaxCrossEntropyLoss";
  return is_listed ? RowOf(kRows, node.op_type()) : nullptr;
}

// Returns the node unchanged, as an operator of ONNX's newest set.
std::optional<Decomposition> FromNewestSet(const onnx::NodeProto& node,
                                           const std::vector<ValueIndex>& inputs) {
  const int newest = DecompositionOpsets().at("");
  if (onnx::OpSchemaRegistry::Schema(node.op_type(), newest, "") == nullptr) return std::nullopt;
  Decomposition same;
  same.nodes.push_back(node);
  same.nodes.back().clear_domain();
  for (size_t i = 0; i < inputs.size(); ++i) {
    same.nodes.back().set_input(static_cast<int>(i), inputs[i] == kNoValue ? "" : OperandName(i));
  }
  same.outputs.assign(node.output().begin(), node.output().end());
  return same;
}

}  // namespace

std::optional<Decomposition> Decompose(const Model::Impl& model, const onnx::NodeProto& node,
                                       const std::vector<ValueIndex>& inputs) {
  const bool is_standard = IsStandard(node);
  const DecompositionRow* row = RowOf(node);
  const bool is_runtime = node.domain().starts_with("com.microsoft");
  if (row == nullptr && !is_standard && !is_runtime) return std::nullopt;
  if (row == nullptr) {
    const bool is_same = is_standard || node.op_type() == "QuantizeLinear" ||
                         node.op_type() == "DequantizeLinear" || node.op_type() == "Trilu";
    return is_same ? FromNewestSet(node, inputs) : std::nullopt;
  }
  DecompositionBuilder producer(model, node, inputs);
  if (!row->make(producer)) return std::nullopt;
  return std::move(producer).Take();
}

bool IsDecomposed(const onnx::NodeProto& node) { return RowOf(node) != nullptr; }

std::string OperandName(size_t position) { return fmt::format("operand {}", position); }

const OpsetVersions& DecompositionOpsets() {
  static const OpsetVersions kOpsets = {{"", 24}};
  return kOpsets;
}

}  // namespace ckplan
