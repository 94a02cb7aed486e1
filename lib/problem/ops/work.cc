#include "lib/problem/ops/work.h"

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "lib/problem/ops/backward_reads.h"
#include "lib/problem/ops/op_checks.h"
#include "lib/problem/ops/op_hint.h"
#include "lib/problem/ops/op_table.h"
#include "lib/problem/ops/softmax.h"

namespace ckplan {

namespace {

// Counts an einsum's multiply-adds: the product of the sizes of all letters and of the ellipsis,
// which has its size from the largest operand.
class EinsumCounter {
 public:
  // `letters` is the operand's part of the equation, such as "bij" or "...ij".
  void Add(const std::string& letters, const std::vector<int64_t>& dims) {
    const size_t dots = letters.find("...");
    const size_t letter_count = dots == std::string::npos ? letters.size() : letters.size() - 3;
    int64_t rest = 1;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      const bool is_before = dots == std::string::npos || axis < dots;
      const bool is_after = !is_before && axis + (letter_count - dots) >= dims.size();
      if (!is_before && !is_after) {
        rest = SaturatingProduct({rest, dims[axis]});
        continue;
      }
      const size_t place = is_before ? axis : letters.size() - (dims.size() - axis);
      if (place >= letters.size()) continue;
      int64_t& size = sizes_[letters[place]];
      size = std::max(size, dims[axis]);
    }
    unnamed_ = std::max(unnamed_, rest);
  }

  int64_t Products() const {
    int64_t product = unnamed_;
    for (const auto& [letter, size] : sizes_) product = SaturatingProduct({product, size});
    return product;
  }

 private:
  std::map<char, int64_t> sizes_;
  int64_t unnamed_ = 1;
};

int64_t EinsumProducts(const OpSpec& spec) {
  std::string left = spec.String("equation", "");
  left.resize(std::min(left.find("->"), left.size()));
  left.erase(std::remove(left.begin(), left.end(), ' '), left.end());
  EinsumCounter counter;
  size_t begin = 0;
  for (const Operand& input : spec.inputs) {
    if (begin > left.size()) break;
    const size_t end = std::min(left.find(',', begin), left.size());
    counter.Add(left.substr(begin, end - begin), input.dims);
    begin = end + 1;
  }
  return counter.Products();
}

// Returns the multiply-adds per output element of a convolution, or per input element of a
// transposed convolution.
int64_t KernelElements(const Operand& weights) {
  return weights.dims.empty() || weights.dims[0] == 0 ? 0
                                                      : CountElements(weights) / weights.dims[0];
}

int64_t RecurrentFlops(const OpSpec& spec, int64_t gates) {
  const RecurrentSizes sizes = CountRecurrent(spec);
  const int64_t products =
      SaturatingProduct({2, gates, sizes.hidden, SaturatingSum(sizes.input, sizes.hidden)});
  const int64_t elementwise = SaturatingProduct({10, gates, sizes.hidden});
  return SaturatingProduct(
      {sizes.directions, sizes.steps, sizes.batch, SaturatingSum(products, elementwise)});
}

int64_t AttentionFlops(const OpSpec& spec) {
  const AttentionSizes sizes = CountAttention(spec);
  constexpr int64_t kSoftmax = 14;
  const int64_t width = SaturatingSum(sizes.query_width, sizes.value_width);
  return SaturatingProduct({sizes.batch, sizes.heads, sizes.queries, sizes.keys,
                            SaturatingSum(SaturatingProduct({2, width}), kSoftmax)});
}

// Outputs that nothing reads may have an unknown type.
bool HasSize(const Operand& operand) {
  return operand.is_present && BitsOf(operand.model_type()) > 0;
}

// Returns true for floats stored in 16 bits, because of the model's type or --activation-type.
bool Is16BitFloat(const Operand& operand) {
  if (!operand.is_present || !IsFloat(operand.model_type())) return false;
  const int64_t elements = CountElements(operand);  // Dimensions are not checked here.
  return elements > 0 && CountBytes(operand) / elements == 2;
}

class WorkCounter {
 public:
  WorkCounter(const OpSpec& spec, Bytes statistic)
      : spec_(spec), rule_(RuleOf(spec.type)), statistic_(statistic.count()) {}

  bool HasHalfOperands() const {
    return Is16BitFloat(spec_.input(0)) || Is16BitFloat(spec_.input(1));
  }

  OpWork Count(const BackwardReads& reads) const {
    OpWork work;
    work.is_convolution = rule_.is_convolution();
    work.uses_matrix_units = rule_.uses_matrix_units();
    work.has_half_operands = work.uses_matrix_units && HasHalfOperands();
    work.forward_flops = ForwardFlops();
    work.forward_traffic = ForwardTraffic();
    const bool has_backward =
        std::any_of(spec_.outputs.begin(), spec_.outputs.end(),
                    [](const Operand& output) { return output.has_gradient; });
    if (has_backward) {
      work.backward_flops = SaturatingProduct({work.forward_flops, CountGradients()});
      work.backward_traffic = BackwardTraffic(reads);
    }
    return work;
  }

 private:
  int64_t InputElements() const {
    return spec_.input(0).is_present ? CountElements(spec_.input(0)) : 0;
  }
  int64_t OutputElements() const {
    const auto output = std::find_if(spec_.outputs.begin(), spec_.outputs.end(), HasSize);
    return output == spec_.outputs.end() ? 0 : CountElements(*output);
  }

  int64_t ForwardFlops() const {
    switch (rule_.work) {
      case WorkKind::kMove:  // A user's hint may set the FLOPs of an unknown operator.
        return SaturatingProduct({spec_.Int(kHintedFlops, 0), OutputElements()});
      case WorkKind::kInputs:
        return SaturatingProduct({rule_.amount, InputElements()});
      case WorkKind::kOutputs:
        return SaturatingProduct({rule_.amount, OutputElements()});
      case WorkKind::kPool:
        return SaturatingProduct({rule_.amount, WindowElements(), OutputElements()});
      case WorkKind::kConv:
        return Convolution(OutputElements());
      case WorkKind::kConvTranspose:
        return Convolution(InputElements());
      case WorkKind::kGemm:
        return Products(spec_.Int("transA", 0) != 0 ? 2 : 1);
      case WorkKind::kMatMul:
        return Products(1);
      case WorkKind::kEinsum:
        return SaturatingProduct({2, EinsumProducts(spec_)});
      case WorkKind::kAttention:
        return AttentionFlops(spec_);
      case WorkKind::kRnn:
        return RecurrentFlops(spec_, rule_.amount);
    }
    return 0;
  }

  int64_t WindowElements() const {
    int64_t window = 1;
    for (const int64_t size : spec_.Ints("kernel_shape")) {
      window = SaturatingProduct({window, std::max<int64_t>(1, size)});
    }
    return window;
  }

  int64_t Convolution(int64_t elements) const {
    if (!spec_.input(1).is_present) return 0;
    const int64_t bias = spec_.input(2).is_present ? OutputElements() : 0;
    return SaturatingSum(SaturatingProduct({2, elements, KernelElements(spec_.input(1))}), bias);
  }

  // Returns the FLOPs of a matrix product. `summed_axis` is the first input's axis to sum over,
  // counted from the end.
  int64_t Products(size_t summed_axis) const {
    if (!spec_.input(0).is_present) return 0;
    return SaturatingProduct({2, OutputElements(), DimFromEnd(spec_.input(0), summed_axis)});
  }

  // Ignores biases, whose gradients need only one pass over the output's gradient.
  int64_t CountGradients() const {
    const size_t inputs = spec_.inputs.size();
    const bool has_bias = rule_.uses_matrix_units() && !rule_.has(traits::kAllPartners);
    const size_t count = has_bias ? std::min<size_t>(2, inputs) : inputs;
    const auto first = spec_.inputs.begin();
    const auto gradients = std::count_if(first, first + static_cast<std::ptrdiff_t>(count),
                                         [](const Operand& input) { return input.has_gradient; });
    return std::max<int64_t>(1, gradients);
  }

  Bytes ForwardTraffic() const {
    int64_t bytes = statistic_;
    for (const Operand& output : spec_.outputs) {
      if (HasSize(output)) bytes = SaturatingSum(bytes, CountBytes(output));
    }
    const int64_t written = bytes;
    for (size_t i = 0; i < spec_.inputs.size(); ++i) {
      if (!spec_.inputs[i].is_present || !ReadsContents(rule_, i)) continue;
      const int64_t size = CountBytes(spec_.inputs[i]);
      const bool picks = i == 0 && rule_.has(traits::kPicks);
      bytes = SaturatingSum(bytes, picks ? std::min(size, written) : size);
    }
    return Bytes(bytes);
  }

  Bytes BackwardTraffic(const BackwardReads& reads) const {
    int64_t bytes = reads.statistic ? statistic_ : 0;
    const auto add = [&bytes](const Operand& operand) {
      if (operand.is_present) bytes = SaturatingSum(bytes, CountBytes(operand));
    };
    for (const Operand& output : spec_.outputs) {
      if (output.has_gradient) add(output);
    }
    for (const size_t i : reads.inputs) add(spec_.input(i));
    for (const size_t i : reads.outputs) add(spec_.output(i));
    for (const Operand& input : spec_.inputs) {
      if (input.has_gradient) add(input);
    }
    return Bytes(bytes);
  }

  const OpSpec& spec_;
  const OpRule& rule_;
  int64_t statistic_;
};

}  // namespace

OpWork WorkOf(const OpSpec& spec, const BackwardReads& reads, Bytes statistic) {
  return WorkCounter(spec, statistic).Count(reads);
}

namespace {

constexpr int64_t kCountBytes = 8;  // A sum of booleans is an int64.

struct ComposedGradient {
  std::string_view type;
  int64_t temporaries;  // How many, each as large as the result.
};

constexpr ComposedGradient kComposedGradients[] = {
    {"Abs", 1},   {"Acos", 5}, {"Acosh", 3}, {"Asin", 4},   {"Asinh", 3}, {"Atan", 2},
    {"Atanh", 3}, {"Cos", 2},  {"Cosh", 1},  {"CumSum", 2}, {"Erf", 4},   {"Reciprocal", 2},
    {"Rsqrt", 2}, {"Sin", 1},  {"Sinh", 1},  {"Sqrt", 1},   {"Tan", 2},
};

// Their gradient is scattered into a copy of zeros of the input's size.
constexpr std::string_view kScattered[] = {"GatherElements", "GatherND", "TopK"};

// Their gradient is a multiple of one intermediate tensor of the input's size.
constexpr std::string_view kScaled[] = {"ReduceL1", "ReduceVariance"};

bool Contains(std::span<const std::string_view> types, std::string_view type) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

int64_t GradientBytes(const OpSpec& spec) {
  int64_t bytes = 0;
  for (const Operand& input : spec.inputs) {
    if (input.is_present && input.has_gradient) bytes = SaturatingSum(bytes, CountBytes(input));
  }
  return bytes;
}

bool HasBroadcastGradient(const OpSpec& spec) {
  const int64_t elements = spec.output(0).elements();
  return std::any_of(spec.inputs.begin(), spec.inputs.end(), [elements](const Operand& input) {
    return input.is_present && input.has_gradient && input.elements() < elements;
  });
}

}  // namespace

Bytes EagerTemporaries(const OpSpec& spec) {
  if (!spec.output(0).is_present) return Bytes(0);
  const Bytes result(spec.output(0).bytes());
  const int64_t input = spec.input(0).is_present ? CountBytes(spec.input(0)) : 0;
  const auto results = [&result](int64_t count) {
    return Bytes(SaturatingProduct({count, result.count()}));
  };
  if (IsInPlaceOnView(spec)) return results(2);
  for (const ComposedGradient& composed : kComposedGradients) {
    if (spec.type == composed.type) return results(composed.temporaries);
  }
  if (spec.type == "Pow" && spec.input(0).has_gradient) return results(2);
  if (spec.type == "Div" && spec.input(1).has_gradient) {
    return Bytes(std::max<int64_t>(0, results(4).count() - GradientBytes(spec)));
  }
  if ((spec.type == "Max" || spec.type == "Min") && spec.inputs.size() == 2) {
    const int64_t masks = SaturatingProduct({2, CountElements(spec.output(0))});
    return results(HasBroadcastGradient(spec) ? 3 : 2) + Bytes(masks);
  }
  if (spec.type == "ReduceMax" || spec.type == "ReduceMin") {
    const int64_t counts = SaturatingProduct({kCountBytes, CountElements(spec.output(0))});
    return result + Bytes(SaturatingSum(CountElements(spec.input(0)), counts));
  }
  if (spec.type == "ReduceLogSumExp") return Bytes(SaturatingProduct({2, input}));
  if (Contains(kScattered, spec.type) || Contains(kScaled, spec.type)) return Bytes(input);
  if (spec.type == "PointwiseLoss") {
    return Bytes(SaturatingProduct({PointwiseTemporaries(spec), input}));
  }
  const bool multiplies = spec.type == "Mul" || spec.type == "PRelu";
  return multiplies && HasBroadcastGradient(spec) ? result : Bytes(0);
}

}  // namespace ckplan
