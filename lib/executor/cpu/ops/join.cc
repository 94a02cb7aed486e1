// Operators that concatenate tensors along an axis, or split them.
#include <algorithm>

#include "lib/executor/cpu/families.h"
#include "lib/executor/cpu/strided_copy.h"
#include "lib/problem/ops/move.h"

namespace ckplan::cpu {

namespace {

// Sizes and offsets of the parts of a row, in bytes.
struct Parts {
  int64_t rows = 1;
  int64_t row_bytes = 0;
  std::vector<int64_t> begin_bytes, size_bytes;

  Parts(const JoinShape& shape, ElementType type)
      : rows(shape.rows), row_bytes(shape.row_size * SizeOf(type)) {
    for (const int64_t begin : shape.begin) begin_bytes.push_back(begin * SizeOf(type));
    for (const int64_t size : shape.size) size_bytes.push_back(size * SizeOf(type));
  }

  // Copies a part into the whole; Extract copies it back.
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

}  // namespace ckplan::cpu
