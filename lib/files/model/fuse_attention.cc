#include "lib/files/model/fuse_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/files/model/attention_pattern.h"
#include "lib/files/model/origin.h"
#include "lib/problem/ops/attention.h"

namespace ckplan {

namespace {

constexpr double kHiddenScore = -std::numeric_limits<double>::infinity();

// A tensor that holds the rows of all heads, with its axes in some order.
struct RowsOfHeads {
  ValueIndex value = kNoValue;
  std::string order;
  double scale = 1;  // Applied between the tensor and the product.
  int64_t repeats = 1;
};

struct AttentionCounts {
  int64_t batch = 1, heads = 1, queries = 1, keys = 1, size = 1, value_size = 1;
};

std::vector<int64_t> OrderOf(const ModelOperation& transpose, size_t rank) {
  std::vector<int64_t> order = IntsAttribute(*transpose.node, "perm");
  if (!order.empty()) return order;
  order.resize(rank);
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

// Labels the axes of a matrix product's operand, as in einsum: b for each leading axis, but h for
// the last of several, and then `rows`.
std::string LettersOf(size_t rank, std::string_view rows) {
  std::string letters(rank - 2, 'b');
  if (rank > 3) letters.back() = 'h';
  return letters + std::string(rows);
}

class AttentionFuser {
 public:
  AttentionFuser(Model::Impl& model, FusedOperators fused, Autograd autograd)
      : model_(model),
        is_captured_(fused == FusedOperators::kCaptured),
        is_gpu_(is_captured_ && autograd == Autograd::kTorchCuda),
        facts_(FindFacts(model)),
        readers_(model, facts_) {}

  void FuseAll() {
    for (size_t i = 0; i < model_.operations.size(); ++i) {
      const ModelOperation& operation = model_.operations[i];
      if (!operation.is_standard() || !facts_.operations[i].is_live) continue;
      if (operation.type() == "Softmax") FuseAround(i);
      if (operation.type() == "Attention") FuseOnnxAttention(i);
    }
  }

 private:
  const Dims& DimsOf(ValueIndex value) const { return model_.value(value).dims; }

  const ModelOperation* ProducerOf(ValueIndex value) const {
    if (model_.value(value).source != ModelValue::Source::kOperation) return nullptr;
    return &model_.operations[static_cast<size_t>(model_.value(value).producer)];
  }

  bool IsView(const ModelOperation& operation) const {
    return facts_.operations[static_cast<size_t>(&operation - model_.operations.data())].is_view;
  }

  // ---- Origins ----------------------------------------------------------------------------------

  // True if the operators were one attention in PyTorch, or may have been because their origin is
  // unknown.
  bool MayBeCaptured(const FoundAttention& found) {
    if (!is_captured_) return true;
    const auto origin = CommonOrigin(model_, {found.scores, found.softmax, found.output});
    if (!origin) return false;
    origin_ = *origin;
    return !origin->is_known() || origin->target.find("scaled_dot_product") != std::string::npos;
  }

  // Exporters scale both queries and keys by the square root of the scale; hand-written models
  // don't.
  bool IsCaptured(const RowsOfHeads& q, const RowsOfHeads& k) const {
    return !is_captured_ || origin_.is_known() || (q.scale == k.scale && q.scale != 1);
  }

  // True if the operation is a part of the current attention.
  bool IsInAttention(const ModelOperation& operation) const {
    return !is_captured_ || OriginOf(model_, operation).name == origin_.name;
  }

  // True if this Expand repeats keys and values within the attention itself. Transformers leaves
  // repeating to PyTorch, except during export, in a line that calls attention_interface.
  bool IsRepeated(const ModelOperation& expand) const {
    if (!is_captured_) return true;
    if (!origin_.is_known()) return false;
    return IsInAttention(expand) || (TraceHas(model_, expand, "transformers/") &&
                                     TraceHas(model_, expand, "attention_interface("));
  }

  // ---- Axes -----------------------------------------------------------------------------------

  // Follows the operand of a product up to the furthest tensor with the same rows and whole axes in
  // some order; nullopt if there is none.
  std::optional<RowsOfHeads> RowsAbove(ValueIndex value, const std::string& letters,
                                       bool may_repeat) const {
    std::optional<RowsOfHeads> best;
    std::optional<HeadAxes> axes = HeadAxes(DimsOf(value), letters);
    double scale = 1;
    while (axes) {
      if (const auto order = axes->Order()) best = {value, *order, scale, axes->repeats()};
      const ModelOperation* producer = ProducerOf(value);
      if (producer == nullptr || !producer->is_standard() || producer->outputs.size() != 1) break;
      if (producer->type() == "FusedAttention") break;
      ValueIndex above = producer->input(0);
      if (above == kNoValue || DimsOf(above).empty()) break;
      if (producer->type() == "Transpose") {
        axes = axes->BeforeTransposeBy(OrderOf(*producer, DimsOf(above).size()));
      } else if (IsView(*producer)) {
        axes = axes->Reshaped(DimsOf(above));
      } else if (producer->type() == "Expand" && may_repeat && IsRepeated(*producer)) {
        axes = axes->BeforeExpand(DimsOf(above));
      } else if (const auto factor = FactorOf(model_, facts_, *producer);
                 factor && IsInAttention(*producer)) {
        above = producer->inputs[factor->position];
        scale *= factor->factor;
      } else {
        break;
      }
      value = above;
    }
    return best;
  }

  // Follows the result of a product down while the tensor is only moved. Sets the operation that
  // produces the tensor. If PyTorch copies the moved tensor, both tensors exist, so this returns
  // the one before the move. Exporters write that copy as a CPU's kernels need it.
  std::optional<RowsOfHeads> RowsBelow(ValueIndex value, const std::string& letters,
                                       bool has_heads_first, size_t* producer) const {
    std::optional<RowsOfHeads> best;
    std::optional<HeadAxes> axes = HeadAxes(DimsOf(value), letters);
    bool is_moved = true;
    std::optional<RowsOfHeads> unmoved;
    const size_t product = *producer;
    for (size_t at = product; axes;) {
      if (const auto order = axes->Order(); order && is_moved) {
        best = {value, *order};
        *producer = at;
        if (at == product) unmoved = best;
      }
      const auto reader = readers_.OnlyOf(value);
      if (!reader) break;
      const ModelOperation& next = model_.operations[*reader];
      if (!next.is_standard() || next.outputs.size() != 1) break;
      is_moved = next.type() == "Transpose";
      if (is_moved) {
        axes = axes->TransposedBy(OrderOf(next, DimsOf(value).size()));
      } else if (IsView(next)) {
        if (unmoved && has_heads_first && OriginOf(model_, next).Is("aten.clone")) {
          *producer = product;
          return unmoved;
        }
        axes = axes->Reshaped(DimsOf(next.outputs[0]));
      } else {
        break;
      }
      at = *reader;
      value = next.outputs[0];
    }
    return best;
  }

  // ---- Masks and biases -----------------------------------------------------------------------

  // The term's sizes along batch, heads, queries and keys; empty if it does not have this form.
  Dims DimsOfTerm(const FoundTerm& term, const AttentionCounts& counts) const {
    Dims dims = DimsOf(term.value);
    const size_t rank = term.scores.size();
    if (dims.size() > rank) return {};
    dims.insert(dims.begin(), rank - dims.size(), 1);
    Dims result = {1, 1, dims[rank - 2], dims[rank - 1]};
    size_t lead = rank - 2;
    if (counts.heads > 1 || (lead > 0 && term.scores[lead - 1] == 1)) {
      --lead;
      if (term.scores[lead] != counts.heads) return {};
      result[1] = dims[lead];
    }
    // Only outer axes may be broadcast: sample n then uses the elements of n % samples.
    bool is_broadcast = false;
    for (size_t i = lead; i-- > 0;) {
      if (term.scores[i] == 1) continue;
      if (dims[i] == 1) {
        is_broadcast = true;
      } else if (is_broadcast) {
        return {};
      }
      result[0] *= dims[i];
    }
    return result;
  }

  struct Terms {
    FoundTerm mask, bias;
    Dims mask_dims, bias_dims;
    double fill = kHiddenScore;
  };

  // Returns the terms as FusedAttention takes them; nullopt if it can't.
  std::optional<Terms> ReadTerms(const std::vector<FoundTerm>& found, double fill,
                                 const AttentionCounts& counts) const {
    Terms terms;
    for (FoundTerm term : found) {
      double own_fill = term.is_bool ? fill : kHiddenScore;
      term = SimplestTerm(model_, facts_, std::move(term), &own_fill);
      const Dims dims = DimsOfTerm(term, counts);
      if (dims.empty()) return std::nullopt;
      const bool is_whole = dims[2] == counts.queries && dims[3] == counts.keys;
      if (IsTrainedTerm(facts_, term.value) && !is_whole) return std::nullopt;
      const bool is_mask_taken = terms.mask.value != kNoValue;
      // A boolean is the mask. The bias can be a boolean that shows keys, or hides them completely.
      if (is_mask_taken && term.is_bool && !terms.mask.is_bool) {
        terms.bias = std::exchange(terms.mask, term);
        terms.bias_dims = std::exchange(terms.mask_dims, dims);
        terms.fill = own_fill;
      } else if (is_mask_taken) {
        if (term.is_bool && (term.hides || own_fill != kHiddenScore)) return std::nullopt;
        terms.bias = term;
        terms.bias_dims = dims;
      } else {
        terms.mask = term;
        terms.mask_dims = dims;
        terms.fill = own_fill;
      }
    }
    return terms;
  }

  // ---- The new operation ----------------------------------------------------------------------

  struct NewAttention {
    RowsOfHeads q, k, v, y;
    AttentionCounts counts;
    Terms terms;
    double scale = 1;
    double dropout = 0;
    bool is_causal = false;
  };

  // True if the result has its heads first in memory, so that moving them is a copy. GPU kernels
  // keep the queries' heads side by side: always the memory-efficient kernel, which takes 32 bits
  // and masks, and flash attention if the queries do.
  bool HasHeadsFirst(const NewAttention& made) const {
    if (!is_gpu_) return true;
    const bool has_mask = made.terms.mask.value != kNoValue || made.terms.bias.value != kNoValue;
    const int32_t type = model_.value(made.q.value).elem_type;
    return type != onnx::TensorProto::FLOAT && !has_mask &&
           made.q.order.find("sh") == std::string::npos;
  }

  static void SetInts(onnx::NodeProto& node, std::string_view name, const Dims& values) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(std::string(name));
    attribute.set_type(onnx::AttributeProto::INTS);
    attribute.mutable_ints()->Add(values.begin(), values.end());
  }
  static void SetInt(onnx::NodeProto& node, std::string_view name, int64_t value) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(std::string(name));
    attribute.set_type(onnx::AttributeProto::INT);
    attribute.set_i(value);
  }
  static void SetFloat(onnx::NodeProto& node, std::string_view name, double value) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(std::string(name));
    attribute.set_type(onnx::AttributeProto::FLOAT);
    attribute.set_f(static_cast<float>(value));
  }
  static void SetText(onnx::NodeProto& node, std::string_view name, const std::string& value) {
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(std::string(name));
    attribute.set_type(onnx::AttributeProto::STRING);
    attribute.set_s(value);
  }

  onnx::NodeProto NodeOf(const NewAttention& made) const {
    onnx::NodeProto node;
    node.set_op_type("FusedAttention");
    SetInt(node, "batch", made.counts.batch);
    SetInt(node, "heads", made.counts.heads);
    SetInt(node, "key_heads", made.counts.heads / made.k.repeats);
    SetInt(node, "queries", made.counts.queries);
    SetInt(node, "keys", made.counts.keys);
    SetInt(node, "size", made.counts.size);
    SetInt(node, "value_size", made.counts.value_size);
    SetFloat(node, "scale", made.scale);
    SetText(node, "q_axes", made.q.order);
    SetText(node, "k_axes", made.k.order);
    SetText(node, "v_axes", made.v.order);
    SetText(node, "y_axes", made.y.order);
    if (made.terms.mask.value != kNoValue) SetInts(node, "mask_dims", made.terms.mask_dims);
    if (made.terms.bias.value != kNoValue) SetInts(node, "bias_dims", made.terms.bias_dims);
    if (made.terms.mask.hides) SetInt(node, "mask_hides", 1);
    if (made.terms.fill != kHiddenScore) SetFloat(node, "fill", made.terms.fill);
    if (made.is_causal) SetInt(node, "is_causal", 1);
    if (made.dropout != 0) SetFloat(node, "dropout", made.dropout);
    return node;
  }

  static bool IsSupported(const AttentionCounts& counts) {
    return counts.batch > 0 && counts.queries > 0 && counts.keys > 0 && counts.size > 0 &&
           counts.value_size > 0 && std::max(counts.size, counts.value_size) <= kMaxAttentionSize;
  }

  // Replaces the operation `target`. The new one takes the name and the file position of `named`.
  void Replace(size_t target, size_t named, const NewAttention& made) {
    model_.made_nodes.push_back(NodeOf(made));
    onnx::NodeProto& node = model_.made_nodes.back();
    node.set_name(model_.operations[named].node->name());
    if (is_captured_) {
      const std::string& type = model_.operations[named].type();
      std::vector<std::string> replaced = {type};
      if (type == "Softmax") replaced = {"MatMul", type, "MatMul"};
      model_.restored.push_back(
          {model_.operations[named].name, node.op_type(), origin_.target, std::move(replaced)});
    }
    ModelOperation& operation = model_.operations[target];
    std::swap(operation.name, model_.operations[named].name);
    operation.file_node = model_.operations[named].file_node;
    operation.node = &node;
    operation.schema = nullptr;
    operation.inputs = {made.q.value, made.k.value, made.v.value};
    if (made.terms.mask.value != kNoValue || made.terms.bias.value != kNoValue) {
      operation.inputs.push_back(made.terms.mask.value);
    }
    if (made.terms.bias.value != kNoValue) operation.inputs.push_back(made.terms.bias.value);
    operation.outputs = {made.y.value};
  }

  // Finds the tensors of queries, keys and values. If keys and values share heads differently, uses
  // the repeated ones.
  bool FindRows(const std::vector<ValueIndex>& operands, const std::vector<std::string>& letters,
                NewAttention& made) const {
    const auto q = RowsAbove(operands[0], letters[0], false);
    auto k = RowsAbove(operands[1], letters[1], true);
    auto v = RowsAbove(operands[2], letters[2], true);
    if (k && v && k->repeats != v->repeats) {
      k = RowsAbove(operands[1], letters[1], false);
      v = RowsAbove(operands[2], letters[2], false);
    }
    // Values must not be scaled, because the scale applies to scores.
    if (!q || !k || !v || v->scale != 1) return false;
    made.q = *q;
    made.k = *k;
    made.v = *v;
    made.scale *= q->scale * k->scale;
    return true;
  }

  void FuseAround(size_t softmax) {
    const auto found = FindAttentionAround(model_, facts_, readers_, softmax, is_gpu_);
    if (!found || !MayBeCaptured(*found)) return;
    const ModelOperation& scores = model_.operations[found->scores];
    const ModelOperation& output = model_.operations[found->output];
    const Dims& q = DimsOf(scores.inputs[0]);
    const Dims& v = DimsOf(output.inputs[1]);
    const size_t rank = q.size();
    NewAttention made;
    made.counts.heads = rank > 3 ? q[rank - 3] : 1;
    for (size_t i = 0; i + (rank > 3 ? 3 : 2) < rank; ++i) made.counts.batch *= q[i];
    made.counts.queries = q[rank - 2];
    made.counts.size = q[rank - 1];
    made.counts.keys = v[rank - 2];
    made.counts.value_size = v[rank - 1];
    made.scale = found->scale;
    made.dropout = found->dropout;
    if (!IsSupported(made.counts)) return;
    const auto terms = ReadTerms(found->terms, found->fill, made.counts);
    if (!terms) return;
    made.terms = *terms;
    if (!FindRows({scores.inputs[0], scores.inputs[1], output.inputs[1]},
                  {LettersOf(rank, "sd"), LettersOf(rank, "ds"), LettersOf(rank, "sd")}, made)) {
      return;
    }
    if (!IsCaptured(made.q, made.k)) return;
    size_t target = found->output;
    const auto y = RowsBelow(found->result, LettersOf(rank, "sd"), HasHeadsFirst(made), &target);
    if (!y) return;
    made.y = *y;
    Replace(target, softmax, made);
  }

  // ---- ONNX's Attention -----------------------------------------------------------------------

  // True if FusedAttention can do everything that this Attention does.
  bool IsPlain(const ModelOperation& attention, const OpSpec& spec) const {
    for (size_t i = 4; i < attention.inputs.size(); ++i) {
      if (attention.inputs[i] != kNoValue) return false;
    }
    for (size_t i = 1; i < attention.outputs.size(); ++i) {
      const ValueIndex output = attention.outputs[i];
      if (output == kNoValue) continue;
      if (readers_.IsOutput(output) || !readers_.Of(output).empty()) return false;
    }
    return spec.Float("softcap", 0) == 0 && spec.Int("left_window_size", -1) < 0 &&
           spec.Int("right_window_size", -1) < 0;
  }

  void FuseOnnxAttention(size_t index) {
    const ModelOperation& attention = model_.operations[index];
    const OpSpec& spec = facts_.operations[index].spec;
    if (!IsPlain(attention, spec)) return;
    if (is_captured_) origin_ = OriginOf(model_, attention);
    const Dims& q = DimsOf(attention.inputs[0]);
    const Dims& k = DimsOf(attention.inputs[1]);
    const Dims& v = DimsOf(attention.inputs[2]);
    const bool is_split = q.size() == 4;
    const int64_t heads = is_split ? q[1] : spec.Int("q_num_heads", 1);
    const int64_t key_heads = is_split ? k[1] : spec.Int("kv_num_heads", 1);
    if (heads < 1 || key_heads < 1 || heads % key_heads != 0) return;
    NewAttention made;
    made.counts.batch = q[0];
    made.counts.heads = heads;
    made.counts.queries = q[q.size() - 2];
    made.counts.keys = k[k.size() - 2];
    made.counts.size = is_split ? q[3] : q[2] / heads;
    made.counts.value_size = is_split ? v[3] : v[2] / key_heads;
    made.scale = spec.Float("scale", 1 / std::sqrt(static_cast<double>(made.counts.size)));
    made.is_causal = spec.Int("is_causal", 0) != 0;
    if (!IsSupported(made.counts)) return;
    const auto terms = ReadTerms(MaskOf(attention, made.counts), kHiddenScore, made.counts);
    if (!terms) return;
    made.terms = *terms;
    size_t target = index;
    if (!FindOnnxRows(attention, is_split ? "bhsd" : "", &target, made)) return;
    made.k.repeats *= heads / key_heads;  // Heads shared by the operator itself.
    Replace(target, index, made);
  }

  std::vector<FoundTerm> MaskOf(const ModelOperation& attention,
                                const AttentionCounts& counts) const {
    const ValueIndex mask = attention.input(3);
    if (mask == kNoValue) return {};
    const bool is_bool = model_.value(mask).elem_type == onnx::TensorProto::BOOL;
    return {{mask, {counts.batch, counts.heads, counts.queries, counts.keys}, false, is_bool}};
  }

  // `letters` is empty if the last axis holds all heads.
  bool FindOnnxRows(const ModelOperation& attention, const std::string& letters, size_t* target,
                    NewAttention& made) const {
    const ValueIndex result = attention.outputs[0];
    if (letters.empty()) {
      made.q = {attention.inputs[0], "bshd"};
      made.k = {attention.inputs[1], "bshd"};
      made.v = {attention.inputs[2], "bshd"};
      made.y = {result, "bshd"};
      return true;
    }
    const std::vector<ValueIndex> operands(attention.inputs.begin(), attention.inputs.begin() + 3);
    if (!FindRows(operands, {letters, letters, letters}, made)) return false;
    const auto y = RowsBelow(result, letters, HasHeadsFirst(made), target);
    if (!y) return false;
    made.y = *y;
    return true;
  }

  Model::Impl& model_;
  const bool is_captured_;
  const bool is_gpu_;
  const ModelFacts facts_;
  const ValueReaders readers_;
  Origin origin_;  // With kCaptured: the origin of the current attention.
};

}  // namespace

void FuseAttention(Model::Impl& model, FusedOperators fused, Autograd autograd) {
  AttentionFuser(model, fused, autograd).FuseAll();
}

}  // namespace ckplan
