#include "lib/executor/cuda/host_fallback.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "lib/problem/ops/bfloat16.h"

namespace ckplan::cuda {

namespace {

constexpr int64_t kLine = 64;  // The alignment of operands on the host, in bytes.

// The host's backend takes no bfloat16, and no channels last.
Operand OnHost(Operand operand) {
  if (operand.type == ElementType::kBFloat16) operand.type = ElementType::kFloat32;
  return operand;
}

bool HasChannelsLast(const OpSpec& spec) {
  const auto is_marked = [](const Operand& operand) {
    return operand.is_present && operand.is_channels_last;
  };
  return std::any_of(spec.inputs.begin(), spec.inputs.end(), is_marked) ||
         std::any_of(spec.outputs.begin(), spec.outputs.end(), is_marked);
}

// The place of one operand in the staging memory.
struct Slot {
  ElementType type = ElementType::kFloat32;  // On the device.
  int64_t bytes = 0;                         // On the device.
  int64_t elements = 0;
  int64_t offset = 0;

  bool is_half() const { return type == ElementType::kBFloat16; }
};

}  // namespace

class HostOp final : public PreparedOp {
 public:
  HostOp(HostFallback& fallback, const OpSpec& spec, std::unique_ptr<PreparedOp> kernel,
         std::string why)
      : fallback_(fallback), kernel_(std::move(kernel)), why_(std::move(why)) {
    int64_t longest_half = 0;
    const auto place = [&](const Operand& operand) {
      Slot slot;
      if (operand.is_present) slot = SlotOf(operand.type, operand.elements());
      if (slot.is_half()) longest_half = std::max(longest_half, slot.bytes);
      return slot;
    };
    for (const Operand& input : spec.inputs) inputs_.push_back(place(input));
    for (const Operand& output : spec.outputs) outputs_.push_back(place(output));
    for (const Operand& output : spec.outputs) output_gradients_.push_back(place(output));
    statistic_ = SlotOf(ElementType::kBool, spec.statistic_bytes);
    for (const Operand& input : spec.inputs) {
      gradients_.push_back(input.has_gradient ? place(input) : Slot());
    }
    halves_ = SlotOf(ElementType::kBool, longest_half);
  }
  ~HostOp() override { fallback_.host_->Release(workspace_); }

  Result<Done> Reserve() {
    CKPLAN_RETURN_IF_ERROR(fallback_.Reserve(staging_bytes_));
    const OpWorkspace needed = kernel_->workspace();
    CKPLAN_ASSIGN_OR_RETURN(workspace_,
                            fallback_.host_->Allocate(std::max(needed.forward, needed.backward)));
    return Done{};
  }

  std::string WhyOnHost() const override { return why_; }

  void Forward(const ForwardCall& call) override {
    const std::vector<const void*> inputs = Fetch(inputs_, call.inputs);
    std::vector<void*> outputs;
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      outputs.push_back(call.outputs[i] == nullptr ? nullptr : At(outputs_[i]));
    }
    void* const statistic = call.statistic == nullptr ? nullptr : At(statistic_);
    kernel_->Forward({inputs, outputs, statistic, workspace_, call.seed});
    for (size_t i = 0; i < call.outputs.size(); ++i) Return(outputs_[i], call.outputs[i]);
    Return(statistic_, call.statistic);
  }

  void BackwardInput(const BackwardCall& call, size_t position, void* gradient) override {
    const std::vector<const void*> inputs = Fetch(inputs_, call.inputs);
    const std::vector<const void*> outputs = Fetch(outputs_, call.outputs);
    const std::vector<const void*> arriving = Fetch(output_gradients_, call.output_gradients);
    const void* const statistic = Fetch(statistic_, call.statistic);
    kernel_->BackwardInput({inputs, outputs, arriving, statistic, workspace_, call.seed}, position,
                           At(gradients_[position]));
    Return(gradients_[position], gradient);
  }

 private:
  Slot SlotOf(ElementType type, int64_t elements) {
    const int64_t bytes = elements * SizeOf(type);
    const Slot slot{type, bytes, elements, staging_bytes_};
    const int64_t on_host = slot.is_half() ? elements * SizeOf(ElementType::kFloat32) : bytes;
    staging_bytes_ += (on_host + kLine - 1) / kLine * kLine;
    return slot;
  }

  void* At(const Slot& slot) const { return static_cast<char*>(fallback_.staging_) + slot.offset; }

  // Copies an operand to the host; null stays null.
  const void* Fetch(const Slot& slot, const void* from) const {
    if (from == nullptr) return nullptr;
    if (slot.bytes == 0) return At(slot);
    if (!slot.is_half()) {
      fallback_.device_.Download(At(slot), from, slot.bytes);
      return At(slot);
    }
    auto* const halves = static_cast<uint16_t*>(At(halves_));
    fallback_.device_.Download(halves, from, slot.bytes);
    auto* const floats = static_cast<float*>(At(slot));
    for (int64_t i = 0; i < slot.elements; ++i) floats[i] = FromBFloat16(halves[i]);
    return floats;
  }
  std::vector<const void*> Fetch(const std::vector<Slot>& slots,
                                 std::span<const void* const> from) const {
    std::vector<const void*> fetched;
    for (size_t i = 0; i < from.size(); ++i) fetched.push_back(Fetch(slots[i], from[i]));
    return fetched;
  }

  // Copies a result to the device, if it is wanted there.
  void Return(const Slot& slot, void* to) const {
    if (to == nullptr || slot.bytes == 0) return;
    if (!slot.is_half()) return fallback_.device_.Upload(to, At(slot), slot.bytes);
    const auto* const floats = static_cast<const float*>(At(slot));
    auto* const halves = static_cast<uint16_t*>(At(halves_));
    for (int64_t i = 0; i < slot.elements; ++i) halves[i] = ToBFloat16(floats[i]);
    fallback_.device_.Upload(to, halves, slot.bytes);
  }

  HostFallback& fallback_;
  std::unique_ptr<PreparedOp> kernel_;
  std::string why_;
  std::vector<Slot> inputs_, outputs_, output_gradients_, gradients_;
  Slot statistic_, halves_;  // halves_: a bfloat16 operand on its way.
  int64_t staging_bytes_ = 0;
  // The operator's own: what one call of a backward step leaves there, the next may read.
  void* workspace_ = nullptr;
};

HostFallback::HostFallback(DeviceMemory& device, std::unique_ptr<Backend> host)
    : device_(device), host_(std::move(host)) {}

HostFallback::~HostFallback() {
  if (host_ != nullptr) host_->Release(staging_);
}

Result<std::unique_ptr<PreparedOp>> HostFallback::Prepare(const OpSpec& spec, std::string why) {
  if (host_ == nullptr) {
    return UnsupportedOp(spec, "cuda",
                         why +
                             "; the host would compute it, but this program was built without "
                             "the cpu backend");
  }
  if (HasChannelsLast(spec)) return UnsupportedOp(spec, "cuda", why);
  OpSpec on_host = spec;
  for (Operand& input : on_host.inputs) input = OnHost(std::move(input));
  for (Operand& output : on_host.outputs) output = OnHost(std::move(output));
  CKPLAN_ASSIGN_OR_RETURN(std::unique_ptr<PreparedOp> kernel, host_->Prepare(on_host));
  auto op = std::make_unique<HostOp>(*this, spec, std::move(kernel), std::move(why));
  CKPLAN_RETURN_IF_ERROR(op->Reserve());
  return std::unique_ptr<PreparedOp>(std::move(op));
}

Result<Done> HostFallback::Reserve(int64_t bytes) {
  if (bytes <= staging_bytes_) return Done{};
  host_->Release(std::exchange(staging_, nullptr));
  staging_bytes_ = 0;
  CKPLAN_ASSIGN_OR_RETURN(staging_, host_->Allocate(bytes));
  staging_bytes_ = bytes;
  return Done{};
}

}  // namespace ckplan::cuda
