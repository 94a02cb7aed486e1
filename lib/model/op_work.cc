#include "lib/model/op_work.h"

#include <algorithm>
#include <map>
#include <string>

#include "lib/model/op_shapes.h"

namespace ckplan {

namespace {

int64_t LastDim(const Value& value, size_t from_end) {
  return value.dims.size() < from_end ? 1 : value.dims[value.dims.size() - from_end];
}

// Letters of an einsum equation to sizes, an ellipsis left to the outputs: its dimensions are
// those of the largest operand that are not named.
int64_t EinsumProducts(const Model::Impl& model, const Operation& operation) {
  const std::string equation = StringAttribute(*operation.node, "equation", "");
  std::map<char, int64_t> sizes;
  int64_t unnamed = 1;
  size_t operand = 0;
  size_t begin = 0;
  const std::string left = equation.substr(0, equation.find("->"));
  while (begin <= left.size() && operand < operation.inputs.size()) {
    const size_t end = std::min(left.find(',', begin), left.size());
    std::string letters;
    for (const char c : left.substr(begin, end - begin)) {
      if (c != ' ') letters += c;
    }
    const Dims& dims = model.value(operation.inputs[operand]).dims;
    const size_t dots = letters.find("...");
    const size_t named = dots == std::string::npos ? letters.size() : letters.size() - 3;
    int64_t rest = 1;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      const bool is_before = dots == std::string::npos || axis < dots;
      const bool is_after = !is_before && axis + (named - dots) >= dims.size();
      if (!is_before && !is_after) {
        rest = SaturatingProduct({rest, dims[axis]});
        continue;
      }
      const size_t place = is_before ? axis : letters.size() - (dims.size() - axis);
      if (place < letters.size()) {
        int64_t& size = sizes[letters[place]];
        size = std::max(size, dims[axis]);
      }
    }
    unnamed = std::max(unnamed, rest);
    ++operand;
    begin = end + 1;
  }
  int64_t product = unnamed;
  for (const auto& [letter, size] : sizes) product = SaturatingProduct({product, size});
  return product;
}

// Multiply-adds of one output (convolution) or input (transposed) element.
int64_t KernelElements(const Value& weights) {
  return weights.dims.empty() || weights.dims[0] == 0 ? 0 : ElementsOf(weights) / weights.dims[0];
}

int64_t RecurrentFlops(const Model::Impl& model, const Operation& operation, int64_t gates) {
  const RecurrentShape shape = ReadRecurrent(model, operation);
  const int64_t products =
      SaturatingProduct({2, gates, shape.hidden, SaturatingSum(shape.input, shape.hidden)});
  const int64_t elementwise = SaturatingProduct({10, gates, shape.hidden});
  return SaturatingProduct(
      {shape.directions, shape.steps, shape.batch, SaturatingSum(products, elementwise)});
}

int64_t AttentionFlops(const Model::Impl& model, const Operation& operation) {
  const AttentionShape shape = ReadAttention(model, operation);
  constexpr int64_t kSoftmax = 14;
  const int64_t width = SaturatingSum(shape.query_width, shape.value_width);
  return SaturatingProduct({shape.batch, shape.heads, shape.queries, shape.keys,
                            SaturatingSum(SaturatingProduct({2, width}), kSoftmax)});
}

class WorkCounter {
 public:
  WorkCounter(const Model::Impl& model, const ModelFacts& facts, const Operation& operation,
              const OperationFacts& own)
      : model_(model), facts_(facts), operation_(operation), own_(own) {}

  OpWork Count(const BackwardReads& backward, Bytes statistic) const {
    OpWork work;
    const WorkKind kind = own_.rule->work;
    work.is_convolution = kind == WorkKind::kConv || kind == WorkKind::kConvTranspose;
    work.uses_matrix_units = kind >= WorkKind::kConv;
    work.forward_flops = ForwardFlops();
    work.forward_traffic = ForwardTraffic(statistic);
    if (own_.has_backward) {
      work.backward_flops = SaturatingProduct({work.forward_flops, CountGradients()});
      work.backward_traffic = BackwardTraffic(backward, statistic);
    }
    return work;
  }

 private:
  const Value* Input(size_t i) const {
    return operation_.input(i) == kNoValue ? nullptr : &model_.value(operation_.inputs[i]);
  }
  const Value* Output(size_t i) const {
    return operation_.output(i) == kNoValue ? nullptr : &model_.value(operation_.outputs[i]);
  }
  int64_t InputElements(size_t i) const { return Input(i) == nullptr ? 0 : ElementsOf(*Input(i)); }
  int64_t OutputElements() const {
    for (size_t i = 0; i < operation_.outputs.size(); ++i) {
      if (Output(i) != nullptr && Output(i)->has_shape) return ElementsOf(*Output(i));
    }
    return 0;
  }

  int64_t ForwardFlops() const {
    const OpRule& rule = *own_.rule;
    const onnx::NodeProto& node = *operation_.node;
    switch (rule.work) {
      case WorkKind::kMove:
        return 0;
      case WorkKind::kInputs:
        return SaturatingProduct({rule.amount, InputElements(0)});
      case WorkKind::kOutputs:
        return SaturatingProduct({rule.amount, OutputElements()});
      case WorkKind::kPool: {
        int64_t window = 1;
        for (const int64_t size : IntsAttribute(node, "kernel_shape")) {
          window = SaturatingProduct({window, std::max<int64_t>(1, size)});
        }
        return SaturatingProduct({rule.amount, window, OutputElements()});
      }
      case WorkKind::kConv:
        return Convolution(OutputElements());
      case WorkKind::kConvTranspose:
        return Convolution(InputElements(0));
      case WorkKind::kGemm: {
        if (Input(0) == nullptr) return 0;
        const bool is_transposed = IntAttribute(node, "transA", 0) != 0;
        return SaturatingProduct({2, OutputElements(), LastDim(*Input(0), is_transposed ? 2 : 1)});
      }
      case WorkKind::kMatMul:
        return Input(0) == nullptr
                   ? 0
                   : SaturatingProduct({2, OutputElements(), LastDim(*Input(0), 1)});
      case WorkKind::kEinsum:
        return SaturatingProduct({2, EinsumProducts(model_, operation_)});
      case WorkKind::kAttention:
        return AttentionFlops(model_, operation_);
      case WorkKind::kRnn:
        return RecurrentFlops(model_, operation_, rule.amount);
    }
    return 0;
  }

  int64_t Convolution(int64_t elements) const {
    if (Input(1) == nullptr) return 0;
    const int64_t bias = Input(2) == nullptr ? 0 : OutputElements();
    return SaturatingSum(SaturatingProduct({2, elements, KernelElements(*Input(1))}), bias);
  }

  // Biases come for free: their gradient is one pass over the output's.
  int64_t CountGradients() const {
    const size_t count = own_.rule->work >= WorkKind::kConv && own_.rule->type != "Einsum"
                             ? std::min<size_t>(2, operation_.inputs.size())
                             : operation_.inputs.size();
    int64_t gradients = 0;
    for (size_t i = 0; i < count; ++i) {
      if (WantsGradient(model_, facts_, operation_, own_, i)) ++gradients;
    }
    return std::max<int64_t>(1, gradients);
  }

  // Operators that pick from their input read as much of it as they put out.
  bool ReadsPart() const {
    const std::string_view type = own_.rule->type;
    return type == "Gather" || type == "GatherElements" || type == "GatherND" || type == "Slice" ||
           type == "Compress";
  }

  int64_t OutputBytes() const {
    int64_t bytes = 0;
    for (const ValueIndex output : operation_.outputs) {
      if (output == kNoValue || !model_.value(output).has_shape) continue;
      bytes = SaturatingSum(bytes, model_.value(output).bytes.count());
    }
    return bytes;
  }

  Bytes ForwardTraffic(Bytes statistic) const {
    int64_t bytes = SaturatingSum(OutputBytes(), statistic.count());
    const int64_t written = bytes;
    for (size_t i = 0; i < operation_.inputs.size(); ++i) {
      if (Input(i) == nullptr || !ReadsContents(*own_.rule, operation_, i)) continue;
      const int64_t size = Input(i)->bytes.count();
      bytes = SaturatingSum(bytes, i == 0 && ReadsPart() ? std::min(size, written) : size);
    }
    return Bytes(bytes);
  }

  Bytes BackwardTraffic(const BackwardReads& backward, Bytes statistic) const {
    int64_t bytes = backward.statistic ? statistic.count() : 0;
    for (const ValueIndex output : operation_.outputs) {
      if (output == kNoValue || !facts_.value(output).requires_grad) continue;
      bytes = SaturatingSum(bytes, model_.value(output).bytes.count());
    }
    for (const size_t i : backward.inputs) bytes = SaturatingSum(bytes, Input(i)->bytes.count());
    for (const size_t i : backward.outputs) {
      if (Output(i) != nullptr) bytes = SaturatingSum(bytes, Output(i)->bytes.count());
    }
    for (size_t i = 0; i < operation_.inputs.size(); ++i) {
      if (!WantsGradient(model_, facts_, operation_, own_, i)) continue;
      bytes = SaturatingSum(bytes, Input(i)->bytes.count());
    }
    return Bytes(bytes);
  }

  const Model::Impl& model_;
  const ModelFacts& facts_;
  const Operation& operation_;
  const OperationFacts& own_;
};

}  // namespace

OpWork WorkOf(const Model::Impl& model, const ModelFacts& facts, const Operation& operation,
              const OperationFacts& own, const BackwardReads& backward, Bytes statistic) {
  return WorkCounter(model, facts, operation, own).Count(backward, statistic);
}

}  // namespace ckplan
