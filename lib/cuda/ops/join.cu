// Operators that lay tensors beside each other along an axis, or take them apart.
#include <vector>

#include "lib/cuda/families.h"
#include "lib/cuda/strided_copy.h"
#include "lib/ops/axes.h"

namespace ckplan::cuda {

namespace {

// Where a part lies in a row of the whole. A row: the whole from the axis on.
struct Part {
  int64_t rows = 1;
  int64_t row_size = 0;             // Of the whole; elements, as are those below.
  int64_t begin = 0, size = 0;      // Of the part, in a row.
  ElementType part_type{}, type{};  // Of the whole.

  StridedCopy Insertion() const {  // From the part into the whole.
    return StridedCopy({rows, size}, {part_type, {size, 1}, 0}, {type, {row_size, 1}, begin});
  }
};

std::vector<Part> PartsOf(const Operand& whole, const std::vector<Operand>& operands, size_t axis) {
  const AxisView view = ViewAlong(whole.dims, axis);
  std::vector<Part> parts;
  int64_t end = 0;
  for (const Operand& operand : operands) {
    Part part{view.outer, view.size * view.inner, end, 0, operand.type, whole.type};
    if (operand.is_present) part.size = operand.dims[axis] * view.inner;
    end += part.size;
    parts.push_back(part);
  }
  return parts;
}

std::vector<StridedCopy> Insertions(const std::vector<Part>& parts) {
  std::vector<StridedCopy> copies;
  for (const Part& part : parts) copies.push_back(part.Insertion());
  return copies;
}

std::vector<StridedCopy> Extractions(const std::vector<Part>& parts) {
  std::vector<StridedCopy> copies;
  for (const Part& part : parts) copies.push_back(part.Insertion().Reversed());
  return copies;
}

class ConcatOp final : public PreparedOp {
 public:
  ConcatOp(Device& device, const std::vector<Part>& parts)
      : device_(device), insert_(Insertions(parts)), extract_(Extractions(parts)) {}

  void Forward(const ForwardCall& call) override {
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      insert_[i].Run(device_, call.inputs[i], call.outputs[0]);
    }
  }
  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    extract_[position].Run(device_, call.output_gradients[0], gradient);
  }

 private:
  Device& device_;
  std::vector<StridedCopy> insert_, extract_;
};

class SplitOp final : public PreparedOp {
 public:
  SplitOp(Device& device, const std::vector<Part>& parts, int64_t input_bytes)
      : device_(device),
        insert_(Insertions(parts)),
        extract_(Extractions(parts)),
        input_bytes_(input_bytes) {}

  void Forward(const ForwardCall& call) override {
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      if (call.outputs[i] != nullptr) extract_[i].Run(device_, call.inputs[0], call.outputs[i]);
    }
  }
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    bool lacks_some = false;
    for (const void* g : call.output_gradients) lacks_some = lacks_some || g == nullptr;
    if (lacks_some) device_.Zero(gradient, input_bytes_);
    for (size_t i = 0; i < call.output_gradients.size(); ++i) {
      if (call.output_gradients[i] != nullptr) {
        insert_[i].Run(device_, call.output_gradients[i], gradient);
      }
    }
  }

 private:
  Device& device_;
  std::vector<StridedCopy> insert_, extract_;
  int64_t input_bytes_;
};

Result<std::unique_ptr<PreparedOp>> PrepareConcat(const OpSpec& spec, Device& device) {
  const Operand& whole = spec.output(0);
  // Before opset 4 the axis could be left out.
  CKPLAN_ASSIGN_OR_RETURN(const size_t axis,
                          NormalAxis(spec, spec.Int("axis", 1), whole.dims.size()));
  return Prepared<ConcatOp>(device, PartsOf(whole, spec.inputs, axis));
}

// The sizes of the outputs say how the input is cut.
Result<std::unique_ptr<PreparedOp>> PrepareSplit(const OpSpec& spec, Device& device) {
  const Operand& whole = spec.input(0);
  CKPLAN_ASSIGN_OR_RETURN(const size_t axis,
                          NormalAxis(spec, spec.Int("axis", 0), whole.dims.size()));
  const std::vector<Part> parts = PartsOf(whole, spec.outputs, axis);
  if (parts.empty() || parts.back().begin + parts.back().size != parts.back().row_size) {
    return Unsupported(spec, "one of its outputs has no name, so that its size is unknown");
  }
  return Prepared<SplitOp>(device, parts, whole.bytes());
}

constexpr OpRow kRows[] = {
    {"Concat", PrepareConcat},
    {"Split", PrepareSplit},
};

}  // namespace

std::span<const OpRow> JoinOps() { return kRows; }

}  // namespace ckplan::cuda
