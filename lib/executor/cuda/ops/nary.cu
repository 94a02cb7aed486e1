// Max and Min of integers, which masks and positions are computed with. The host computes those of
// floats, Sum and Mean.
#include <vector>

#include "lib/executor/cuda/index.h"
#include "lib/executor/cuda/launch.h"
#include "lib/executor/cuda/registry.h"
#include "lib/executor/scalar/binary.h"

namespace ckplan::cuda {

namespace {

// A kernel's arguments are limited to 4 KiB.
constexpr int kMaxInputs = 24;

Layout NaryLayout(const OpSpec& spec) {
  std::vector<Dims> dims;
  for (const Operand& input : spec.inputs) dims.push_back(input.dims);
  return BroadcastLayout(spec.output(0).dims, dims);
}

template <typename T>
struct Pointers {
  const T* at[kMaxInputs];
};

template <typename T, typename F>
class IntegerNaryOp final : public PreparedOp {
 public:
  IntegerNaryOp(const OpSpec& spec, Device& device)
      : device_(device), inputs_(static_cast<int>(spec.inputs.size())) {
    Layout layout = NaryLayout(spec);
    layout.strides.resize(kMaxInputs, Dims(layout.dims.size(), 0));
    layout_ = DeviceLayout<kMaxInputs>(layout);
  }

  void Forward(const ForwardCall& call) override {
    Pointers<T> in{};
    for (int k = 0; k < inputs_; ++k) {
      in.at[k] = static_cast<const T*>(call.inputs[static_cast<size_t>(k)]);
    }
    auto* y = static_cast<T*>(call.outputs[0]);
    const DeviceLayout<kMaxInputs> layout = layout_;
    const int count = inputs_;
    ForEach(device_, layout.count(), [=] CKPLAN_KERNEL(int64_t i) {
      T value = in.at[0][layout.FindOne(0, i)];
      for (int k = 1; k < count; ++k) value = F::Value(value, in.at[k][layout.FindOne(k, i)]);
      y[i] = value;
    });
  }

 private:
  Device& device_;
  int inputs_;
  DeviceLayout<kMaxInputs> layout_;
};

template <typename F>
Result<std::unique_ptr<PreparedOp>> PrepareExtreme(const OpSpec& spec, Device& device) {
  if (IsFloat(spec.input(0).type)) return Unsupported(spec, "its kernel takes only integers");
  if (spec.inputs.size() > kMaxInputs) return Unsupported(spec, "it has more than 24 inputs");
  if (!FitsDevice(NaryLayout(spec))) {
    return Unsupported(spec, "its operands' broadcast needs more than 8 axes");
  }
  if (spec.input(0).type == ElementType::kInt32) {
    return Prepared<IntegerNaryOp<int32_t, F>>(spec, device);
  }
  return Prepared<IntegerNaryOp<int64_t, F>>(spec, device);
}

constexpr std::string_view kLimits = "at most 24 inputs; floats run on the host";

constexpr OpRow kNaryOps[] = {
    {"Max", PrepareExtreme<scalar::Larger>, kLimits},
    {"Min", PrepareExtreme<scalar::Smaller>, kLimits},
};

}  // namespace

std::span<const OpRow> NaryOps() { return kNaryOps; }

}  // namespace ckplan::cuda
