// Operators that copy each element of the input to one or more places of the output: transposes,
// slices, blocks, repetitions, and views that a graph keeps as nodes.
#include "lib/problem/ops/move.h"

#include <algorithm>

#include "lib/executor/cpu/reduction.h"
#include "lib/executor/cpu/registry.h"
#include "lib/executor/cpu/strided_copy.h"

namespace ckplan::cpu {

namespace {

// Each output element is an input element; no input element occurs twice.
class MoveOp final : public PreparedOp {
 public:
  MoveOp(const OpSpec& spec, StridedCopy copy)
      : forward_(std::move(copy)),
        backward_(forward_.Reversed()),
        element_bytes_(SizeOf(spec.output(0).type)),
        input_bytes_(spec.input(0).bytes()),
        leaves_out_(spec.output(0).elements() < spec.input(0).elements()) {}

  void Forward(const ForwardCall& call) override {
    forward_.Run(call.inputs[0], call.outputs[0], element_bytes_);
  }
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    if (leaves_out_) ZeroBytes(gradient, input_bytes_);
    backward_.Run(call.output_gradients[0], gradient, element_bytes_);
  }

 private:
  StridedCopy forward_, backward_;
  int64_t element_bytes_, input_bytes_;
  bool leaves_out_;
};

// Each input element is repeated along axes of stride 0; the repetitions' gradients are summed.
class RepeatOp final : public PreparedOp {
 public:
  RepeatOp(const OpSpec& spec, const MoveShape& shape)
      : copy_(shape.dims, shape.strides, 0, RowMajorStrides(shape.dims)),
        element_bytes_(SizeOf(spec.output(0).type)),
        input_bytes_(spec.input(0).bytes()),
        is_whole_(spec.input(0).elements() == spec.output(0).elements()) {
    if (spec.input(0).has_gradient && !is_whole_) reduction_ = Reduction(copy_.layout(), 0);
  }
  OpWorkspace workspace() const override { return {0, reduction_.workspace()}; }

  void Forward(const ForwardCall& call) override {
    copy_.Run(call.inputs[0], call.outputs[0], element_bytes_);
  }
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    const auto* g = static_cast<const float*>(call.output_gradients[0]);
    if (is_whole_) return CopyBytes(gradient, g, input_bytes_);
    reduction_.Run<SumOf>(static_cast<float*>(gradient), call.workspace,
                          [g](const int64_t* at, int64_t, float*) { return g + at[1]; });
  }

 private:
  StridedCopy copy_;
  Reduction reduction_;
  int64_t element_bytes_, input_bytes_;
  bool is_whole_;
};

Result<std::unique_ptr<PreparedOp>> PrepareMove(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const MoveShape shape, ReadMoveShape(spec));
  return Prepared<MoveOp>(
      spec, StridedCopy(shape.dims, shape.strides, shape.base, RowMajorStrides(shape.dims)));
}

Result<std::unique_ptr<PreparedOp>> PrepareRepeat(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const MoveShape shape, ReadRepeatShape(spec));
  return Prepared<RepeatOp>(spec, shape);
}

constexpr OpRow kMoveOps[] = {
    {"Identity", PrepareMove}, {"Reshape", PrepareMove},      {"Flatten", PrepareMove},
    {"Squeeze", PrepareMove},  {"Unsqueeze", PrepareMove},    {"Transpose", PrepareMove},
    {"Slice", PrepareMove},    {"DepthToSpace", PrepareMove}, {"SpaceToDepth", PrepareMove},
    {"Expand", PrepareRepeat}, {"Tile", PrepareRepeat},
};

}  // namespace

std::span<const OpRow> MoveOps() { return kMoveOps; }

// Operators that concatenate tensors along an axis, or split them.

namespace {

// The parts' sizes and offsets within a row, in bytes.
struct Parts {
  int64_t rows = 1;
  int64_t row_bytes = 0;
  std::vector<int64_t> begin_bytes, size_bytes;

  Parts(const JoinShape& shape, ElementType type)
      : rows(shape.rows), row_bytes(shape.row_size * SizeOf(type)) {
    for (const int64_t begin : shape.begin) begin_bytes.push_back(begin * SizeOf(type));
    for (const int64_t size : shape.size) size_bytes.push_back(size * SizeOf(type));
  }

  // Copies a part into the whole. Extract does the opposite.
  void Insert(size_t part, const void* from, void* whole) const {
    Copy(part, static_cast<const char*>(from), size_bytes[part],
         static_cast<char*>(whole) + begin_bytes[part], row_bytes);
  }
  void Extract(size_t part, const void* whole, void* to) const {
    Copy(part, static_cast<const char*>(whole) + begin_bytes[part], row_bytes,
         static_cast<char*>(to), size_bytes[part]);
  }
  void Zero(size_t part, void* whole) const {
    for (int64_t row = 0; row < rows; ++row) {
      ZeroBytes(static_cast<char*>(whole) + begin_bytes[part] + row * row_bytes, size_bytes[part]);
    }
  }

 private:
  void Copy(size_t part, const char* from, int64_t from_stride, char* to, int64_t to_stride) const {
    const int64_t bytes = size_bytes[part];
    if (bytes == 0) return;
    if (rows == 1) return CopyBytes(to, from, bytes);
    const int64_t grain = std::max<int64_t>(1, 4 * kGrain / bytes);
    ParallelFor(rows, grain, [=](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        std::memcpy(to + row * to_stride, from + row * from_stride, static_cast<size_t>(bytes));
      }
    });
  }
};

class ConcatOp final : public PreparedOp {
 public:
  explicit ConcatOp(Parts parts) : parts_(std::move(parts)) {}
  void Forward(const ForwardCall& call) override {
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      parts_.Insert(i, call.inputs[i], call.outputs[0]);
    }
  }
  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    parts_.Extract(position, call.output_gradients[0], gradient);
  }

 private:
  Parts parts_;
};

class SplitOp final : public PreparedOp {
 public:
  explicit SplitOp(Parts parts) : parts_(std::move(parts)) {}
  void Forward(const ForwardCall& call) override {
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      if (call.outputs[i] != nullptr) parts_.Extract(i, call.inputs[0], call.outputs[i]);
    }
  }
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    for (size_t i = 0; i < call.output_gradients.size(); ++i) {
      if (call.output_gradients[i] != nullptr) {
        parts_.Insert(i, call.output_gradients[i], gradient);
      } else {
        parts_.Zero(i, gradient);
      }
    }
  }

 private:
  Parts parts_;
};

Result<std::unique_ptr<PreparedOp>> PrepareConcat(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const JoinShape shape, ReadConcatShape(spec));
  return Prepared<ConcatOp>(Parts(shape, spec.output(0).type));
}

Result<std::unique_ptr<PreparedOp>> PrepareSplit(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const JoinShape shape, ReadSplitShape(spec));
  return Prepared<SplitOp>(Parts(shape, spec.input(0).type));
}

constexpr OpRow kJoinOps[] = {
    {"Concat", PrepareConcat},
    {"Split", PrepareSplit},
};

}  // namespace

std::span<const OpRow> JoinOps() { return kJoinOps; }

// ReverseSequence: reverses the first elements of each sequence and copies the rest.

namespace {

// The first two axes are batch and time, in either order; later axes are copied as one block. The
// operator is its own inverse, so backward applies it to the gradient.
class ReverseSequenceOp final : public PreparedOp {
 public:
  ReverseSequenceOp(const OpSpec& spec, const ReverseShape& shape)
      : shape_(shape), row_bytes_(shape.inner * SizeOf(spec.input(0).type)) {}

  void Forward(const ForwardCall& call) override {
    Reverse(call.inputs[1], call.inputs[0], call.outputs[0]);
  }
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    Reverse(call.inputs[1], call.output_gradients[0], gradient);
  }

 private:
  void Reverse(const void* lengths, const void* from, void* to) const {
    if (row_bytes_ == 0) return;
    const int64_t grain = std::max<int64_t>(1, 4 * kGrain / row_bytes_);
    const ReverseShape s = shape_;
    ParallelFor(s.outer * s.middle, grain, [=, this](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t time = s.is_time_first ? row / s.middle : row % s.middle;
        const int64_t sequence = s.is_time_first ? row % s.middle : row / s.middle;
        const int64_t length =
            std::clamp<int64_t>(static_cast<const int64_t*>(lengths)[sequence], 0, s.length());
        const int64_t source = time < length ? length - 1 - time : time;
        const int64_t at =
            s.is_time_first ? source * s.middle + sequence : sequence * s.middle + source;
        std::memcpy(static_cast<char*>(to) + row * row_bytes_,
                    static_cast<const char*>(from) + at * row_bytes_,
                    static_cast<size_t>(row_bytes_));
      }
    });
  }

  ReverseShape shape_;
  int64_t row_bytes_;
};

Result<std::unique_ptr<PreparedOp>> PrepareReverseSequence(const OpSpec& spec) {
  CKPLAN_ASSIGN_OR_RETURN(const ReverseShape shape, ReadReverseShape(spec));
  return Prepared<ReverseSequenceOp>(spec, shape);
}

constexpr OpRow kReverseOps[] = {{"ReverseSequence", PrepareReverseSequence}};

}  // namespace

std::span<const OpRow> ReverseOps() { return kReverseOps; }

}  // namespace ckplan::cpu
