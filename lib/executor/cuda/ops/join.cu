// Operators that concatenate tensors along an axis, or split them.
#include <vector>

#include "lib/executor/cuda/families.h"
#include "lib/executor/cuda/strided_copy.h"
#include "lib/problem/ops/move.h"

namespace ckplan::cuda {

namespace {

// The position of a part within each row of the whole. A row is the whole from the axis on.
struct Part {
  int64_t rows = 1;
  int64_t row_size = 0;             // Size of a row of the whole, in elements.
  int64_t begin = 0, size = 0;      // Range of the part within a row, in elements.
  ElementType part_type{}, type{};  // Type of the part, type of the whole.

  StridedCopy Insertion() const {  // Copies the part into the whole.
    return StridedCopy({rows, size}, {part_type, {size, 1}, 0}, {type, {row_size, 1}, begin});
  }
};

std::vector<Part> PartsOf(const JoinShape& shape, ElementType type,
                          const std::vector<Operand>& operands) {
  std::vector<Part> parts;
  for (size_t i = 0; i < operands.size(); ++i) {
    parts.push_back(
        {shape.rows, shape.row_size, shape.begin[i], shape.size[i], operands[i].type, type});
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
  CKPLAN_ASSIGN_OR_RETURN(const JoinShape shape, ReadConcatShape(spec));
  return Prepared<ConcatOp>(device, PartsOf(shape, spec.output(0).type, spec.inputs));
}

Result<std::unique_ptr<PreparedOp>> PrepareSplit(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const JoinShape shape, ReadSplitShape(spec));
  return Prepared<SplitOp>(device, PartsOf(shape, spec.input(0).type, spec.outputs),
                           spec.input(0).bytes());
}

constexpr OpRow kJoinOps[] = {
    {"Concat", PrepareConcat},
    {"Split", PrepareSplit},
};

}  // namespace

std::span<const OpRow> JoinOps() { return kJoinOps; }

}  // namespace ckplan::cuda
