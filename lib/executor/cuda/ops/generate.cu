// Tensors generated from shapes and a few numbers, and masking by position.
#include <bit>
#include <cstring>

#include "lib/executor/cuda/element_copy.h"
#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/kernel.h"
#include "lib/executor/cuda/launch.h"
#include "lib/executor/cuda/registry.h"
#include "lib/executor/scalar/integers.h"
#include "lib/problem/ops/generate.h"

namespace ckplan::cuda {

namespace {

uint64_t BitsOfValue(ElementType type, float value) {
  return type == ElementType::kBFloat16 ? ToBFloat16(value) : std::bit_cast<uint32_t>(value);
}

// Writes the lower bytes of a number as an element of a tensor.
struct BitsOut {
  void* data;
  int64_t bytes;
  CKPLAN_DEVICE void Set(int64_t i, uint64_t bits) const {
    if (bytes == 4) {
      static_cast<uint32_t*>(data)[i] = static_cast<uint32_t>(bits);
    } else if (bytes == 8) {
      static_cast<uint64_t*>(data)[i] = bits;
    } else if (bytes == 2) {
      static_cast<uint16_t*>(data)[i] = static_cast<uint16_t>(bits);
    } else {
      static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(bits);
    }
  }
};

// ---- ConstantOfShape, Shape, Size ---------------------------------------------------------------

// Fills a tensor with one bit pattern.
class FillOp final : public OpWithoutGradient {
 public:
  FillOp(const Operand& output, Device& device, uint64_t bits)
      : device_(device),
        count_(output.elements()),
        element_bytes_(SizeOf(output.type)),
        bits_(bits) {}
  void Forward(const ForwardCall& call) override {
    const BitsOut y{call.outputs[0], element_bytes_};
    const uint64_t bits = bits_;
    ForEach(device_, count_, [=] CKPLAN_KERNEL(int64_t i) { y.Set(i, bits); });
  }

 private:
  Device& device_;
  int64_t count_, element_bytes_;
  uint64_t bits_;
};

Result<std::unique_ptr<PreparedOp>> PrepareConstantOfShape(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const FillValue value, ReadConstantOfShape(spec));
  const ElementType type = spec.output(0).type;
  return Prepared<FillOp>(spec.output(0), device,
                          IsFloat(type) ? BitsOfValue(type, static_cast<float>(value.real))
                                        : static_cast<uint64_t>(value.integer));
}

class ShapeOp final : public OpWithoutGradient {
 public:
  ShapeOp(Device& device, const Dims& dims, DeviceTable<int64_t> table)
      : device_(device),
        bytes_(static_cast<int64_t>(dims.size() * sizeof(int64_t))),
        table_(std::move(table)) {}
  void Forward(const ForwardCall& call) override {
    device_.Copy(call.outputs[0], table_.data(), bytes_);
  }

 private:
  Device& device_;
  int64_t bytes_;
  DeviceTable<int64_t> table_;
};

Result<std::unique_ptr<PreparedOp>> PrepareShape(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const Dims dims, ReadShapeOf(spec));
  CKPLAN_ASSIGN_OR_RETURN(DeviceTable<int64_t> table, DeviceTable<int64_t>::Create(device, dims));
  return Prepared<ShapeOp>(device, dims, std::move(table));
}

// ---- Range --------------------------------------------------------------------------------------

template <typename T>
class RangeOp final : public OpWithoutGradient {
 public:
  RangeOp(const OpSpec& spec, Device& device)
      : device_(device),
        count_(spec.output(0).elements()),
        start_type_(spec.input(0).type),
        step_type_(spec.input(2).type),
        y_type_(spec.output(0).type) {}
  void Forward(const ForwardCall& call) override {
    const Reader<T> start(call.inputs[0], start_type_);
    const Reader<T> step(call.inputs[2], step_type_);
    const Writer<T> y(call.outputs[0], y_type_);
    ForEach(device_, count_, [=] CKPLAN_KERNEL(int64_t i) {
      const T first = start[0];
      const T difference = step[0];
      y.Set(i, scalar::RangeValue(first, difference, i));
    });
  }

 private:
  Device& device_;
  int64_t count_;
  ElementType start_type_, step_type_, y_type_;
};

Result<std::unique_ptr<PreparedOp>> PrepareRange(const OpSpec& spec, Device& device) {
  if (IsFloat(spec.output(0).type)) return Prepared<RangeOp<float>>(spec, device);
  if (spec.output(0).type == ElementType::kInt32) return Prepared<RangeOp<int32_t>>(spec, device);
  return Prepared<RangeOp<int64_t>>(spec, device);
}

// ---- OneHot, EyeLike ----------------------------------------------------------------------------

// Reads indices of any type; floats are truncated to integers.
struct IndicesIn {
  FloatsIn floats;
  IntegersIn integers;
  bool is_float;
  IndicesIn(const void* data, ElementType type)
      : floats(data, type), integers(data, type), is_float(IsFloat(type)) {}
  CKPLAN_DEVICE int64_t operator[](int64_t i) const {
    return is_float ? static_cast<int64_t>(floats[i]) : integers[i];
  }
};

// An index out of range gives the value `off`.
class OneHotOp final : public OpWithoutGradient {
 public:
  OneHotOp(const OpSpec& spec, Device& device, const AxisView& view)
      : device_(device),
        index_type_(spec.input(0).type),
        value_type_(spec.input(2).type),
        y_type_(spec.output(0).type),
        view_(view) {}
  void Forward(const ForwardCall& call) override {
    const int64_t count = view_.outer * view_.size * view_.inner;
    if (count == 0) return;
    const IndicesIn indices(call.inputs[0], index_type_);
    const ElementCopy copy(call.inputs[2], value_type_, call.outputs[0], y_type_);
    const int64_t size = view_.size;
    const Divider inner(view_.inner), sizes(view_.size);
    ForEach(device_, count, [=] CKPLAN_KERNEL(int64_t i) {
      int64_t column = i;
      int64_t place = inner.Split(column);
      const int64_t outer = sizes.Split(place);
      int64_t index = indices[outer * inner.divisor() + column];
      if (index < 0) index += size;
      copy(i, index == place ? 1 : 0);
    });
  }

 private:
  Device& device_;
  ElementType index_type_, value_type_, y_type_;
  AxisView view_;
};

Result<std::unique_ptr<PreparedOp>> PrepareOneHot(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const AxisView view, ReadOneHotShape(spec));
  return Prepared<OneHotOp>(spec, device, view);
}

class EyeOp final : public OpWithoutGradient {
 public:
  EyeOp(const OpSpec& spec, Device& device)
      : device_(device),
        dims_(spec.output(0).dims),
        type_(spec.output(0).type),
        diagonal_(spec.Int("k", 0)) {}
  void Forward(const ForwardCall& call) override {
    const int64_t count = Product(dims_);
    if (count == 0) return;
    const uint64_t one = IsFloat(type_) ? BitsOfValue(type_, 1.0F) : 1;
    const BitsOut y{call.outputs[0], SizeOf(type_)};
    const Divider columns(dims_[1]);
    const int64_t diagonal = diagonal_;
    ForEach(device_, count, [=] CKPLAN_KERNEL(int64_t i) {
      int64_t column = i;
      const int64_t row = columns.Split(column);
      y.Set(i, column - row == diagonal ? one : 0);
    });
  }

 private:
  Device& device_;
  Dims dims_;
  ElementType type_;
  int64_t diagonal_;
};

Result<std::unique_ptr<PreparedOp>> PrepareEyeLike(const OpSpec& spec, Device& device) {
  return Prepared<EyeOp>(spec, device);
}

// ---- Trilu --------------------------------------------------------------------------------------

// Sets each matrix to zero on one side of a diagonal; backward does the same with the gradient.
class TriluOp final : public PreparedOp {
 public:
  TriluOp(const OpSpec& spec, Device& device, const TriluShape& shape)
      : device_(device),
        shape_(shape),
        count_(spec.input(0).elements()),
        x_type_(spec.input(0).type),
        y_type_(spec.output(0).type) {}

  void Forward(const ForwardCall& call) override {
    Keep(ElementCopy(call.inputs[0], x_type_, call.outputs[0], y_type_));
  }
  void BackwardInput(const BackwardCall& call, size_t, void* gradient) override {
    Keep(ElementCopy(call.output_gradients[0], y_type_, gradient, x_type_));
  }

  void Keep(const ElementCopy& copy) {
    if (count_ == 0) return;
    const Divider rows(shape_.rows), columns(shape_.columns);
    const int64_t diagonal = shape_.diagonal;
    const bool is_upper = shape_.is_upper;
    ForEach(device_, count_, [=] CKPLAN_KERNEL(int64_t i) {
      int64_t column = i;
      int64_t row = columns.Split(column);
      rows.Split(row);
      const bool is_kept = is_upper ? column - row >= diagonal : column - row <= diagonal;
      if (is_kept) {
        copy(i, i);
      } else {
        copy.Clear(i);
      }
    });
  }

 private:
  Device& device_;
  TriluShape shape_;
  int64_t count_;
  ElementType x_type_, y_type_;
};

Result<std::unique_ptr<PreparedOp>> PrepareTrilu(const OpSpec& spec, Device& device) {
  CKPLAN_ASSIGN_OR_RETURN(const TriluShape shape, ReadTriluShape(spec));
  return Prepared<TriluOp>(spec, device, shape);
}

constexpr OpRow kGenerateOps[] = {
    {"ConstantOfShape", PrepareConstantOfShape},
    {"Shape", PrepareShape},
    {"Size", PrepareShape},
    {"Range", PrepareRange},
    {"OneHot", PrepareOneHot},
    {"EyeLike", PrepareEyeLike},
    {"Trilu", PrepareTrilu},
};

}  // namespace

std::span<const OpRow> GenerateOps() { return kGenerateOps; }

}  // namespace ckplan::cuda
