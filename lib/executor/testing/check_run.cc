#include "lib/executor/testing/check_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "lib/executor/testing/tensor.h"
#include "lib/problem/ops/bfloat16.h"

namespace ckplan::reference {

namespace {

constexpr unsigned char kGuard = 0x5C;
constexpr int64_t kGuardBytes = 64;

template <typename T>
void Append(Blob& bytes, T value) {
  const size_t end = bytes.size();
  bytes.resize(end + sizeof(T));
  std::memcpy(bytes.data() + end, &value, sizeof(T));
}

template <typename T>
double ReadAt(const Blob& bytes, size_t i) {
  T value{};
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return static_cast<double>(value);
}

double ReadElement(const Blob& bytes, ElementType type, size_t i) {
  switch (type) {
    case ElementType::kFloat32:
      return ReadAt<float>(bytes, i);
    case ElementType::kBFloat16: {
      uint16_t half = 0;
      std::memcpy(&half, bytes.data() + i * sizeof(half), sizeof(half));
      return static_cast<double>(FromBFloat16(half));
    }
    case ElementType::kInt32:
      return ReadAt<int32_t>(bytes, i);
    case ElementType::kInt64:
      return ReadAt<int64_t>(bytes, i);
    case ElementType::kBool:
      return bytes[i];
  }
  return 0;
}

using Buffers = std::vector<std::unique_ptr<WatchedBuffer>>;

void CheckGuards(const Buffers& buffers, std::string_view what, std::vector<std::string>& faults) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i] != nullptr && !buffers[i]->AreGuardsIntact()) {
      faults.push_back(fmt::format("it writes outside {} {}", what, i));
    }
  }
}

void CheckUnchanged(const Buffers& buffers, const std::vector<Blob>& before, std::string_view what,
                    std::vector<std::string>& faults) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i] != nullptr && buffers[i]->Read() != before[i]) {
      faults.push_back(fmt::format("it changes {} {}", what, i));
    }
  }
}

void* AddressOf(const std::unique_ptr<WatchedBuffer>& buffer) {
  return buffer == nullptr ? nullptr : buffer->at();
}

std::vector<const void*> Addresses(const Buffers& buffers) {
  std::vector<const void*> addresses;
  for (const auto& buffer : buffers) addresses.push_back(AddressOf(buffer));
  return addresses;
}

// Allocates a statistic or a workspace; null for 0 bytes.
std::unique_ptr<WatchedBuffer> Scratch(Backend& backend, int64_t bytes) {
  return bytes == 0 ? nullptr : std::make_unique<WatchedBuffer>(backend, bytes);
}

// Returns buffers with the contents of `tensors`, except tensors that backward must not read.
Buffers Fill(Backend& backend, const std::vector<Tensor>& tensors, std::vector<Blob>& contents,
             const std::vector<Operand>* read_by_backward) {
  Buffers buffers(tensors.size());
  contents.resize(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].is_present) continue;
    if (read_by_backward != nullptr && !(*read_by_backward)[i].is_read_by_backward) continue;
    contents[i] = ToBytes(tensors[i]);
    buffers[i] = std::make_unique<WatchedBuffer>(backend, tensors[i]);
  }
  return buffers;
}

}  // namespace

ReusingBackend::~ReusingBackend() {
  for (const auto& [size, blocks] : free_) {
    for (void* const memory : blocks) ForwardingBackend::Release(memory);
  }
}

Result<void*> ReusingBackend::Allocate(int64_t bytes) {
  std::vector<void*>& blocks = free_[bytes];
  if (!blocks.empty()) {
    void* const memory = blocks.back();
    blocks.pop_back();
    return memory;
  }
  CKPLAN_ASSIGN_OR_RETURN(void* const memory, ForwardingBackend::Allocate(bytes));
  sizes_[memory] = bytes;
  return memory;
}

void ReusingBackend::Release(void* memory) {
  if (memory != nullptr) free_[sizes_.at(memory)].push_back(memory);
}

WatchedBuffer::WatchedBuffer(Backend& backend, int64_t bytes)
    : backend_(backend), bytes_(bytes), guard_(backend.alignment()) {
  // With an alignment of 8 the guard has 72 bytes, which is not a multiple of a cache line.
  while (guard_ < kGuardBytes + 1) guard_ += backend.alignment();
  auto memory = backend.Allocate(bytes + 2 * guard_);
  base_ = memory.value();
  const Blob guards(static_cast<size_t>(bytes + 2 * guard_), kGuard);
  backend.Upload(base_, guards.data(), bytes + 2 * guard_);
  if (bytes > 0) backend.Poison(at(), bytes);
}

WatchedBuffer::WatchedBuffer(Backend& backend, const Tensor& contents)
    : WatchedBuffer(backend, static_cast<int64_t>(ToBytes(contents).size())) {
  const Blob bytes = ToBytes(contents);
  if (bytes_ > 0) backend.Upload(at(), bytes.data(), bytes_);
}

WatchedBuffer::~WatchedBuffer() { backend_.Release(base_); }

void* WatchedBuffer::at() const { return static_cast<unsigned char*>(base_) + guard_; }

Blob WatchedBuffer::Read() const {
  Blob bytes(static_cast<size_t>(bytes_));
  if (bytes_ > 0) backend_.Download(bytes.data(), at(), bytes_);
  return bytes;
}

bool WatchedBuffer::AreGuardsIntact() const {
  Blob all(static_cast<size_t>(bytes_ + 2 * guard_));
  backend_.Download(all.data(), base_, bytes_ + 2 * guard_);
  const auto is_guard = [](unsigned char byte) { return byte == kGuard; };
  return std::all_of(all.begin(), all.begin() + guard_, is_guard) &&
         std::all_of(all.end() - guard_, all.end(), is_guard);
}

Blob ToBytes(const Tensor& tensor) {
  Blob bytes;
  for (const double value : tensor.values) {
    switch (tensor.type) {
      case ElementType::kFloat32:
        Append(bytes, static_cast<float>(value));
        break;
      case ElementType::kBFloat16:
        Append(bytes, ToBFloat16(static_cast<float>(value)));
        break;
      case ElementType::kInt32:
        Append(bytes, static_cast<int32_t>(value));
        break;
      case ElementType::kInt64:
        Append(bytes, ToInteger(value));
        break;
      case ElementType::kBool:
        Append(bytes, static_cast<unsigned char>(value != 0));
        break;
    }
  }
  return bytes;
}

Tensor FromBytes(const Blob& bytes, const Operand& operand) {
  Tensor tensor{operand.is_present, operand.type, operand.dims, {}};
  for (size_t i = 0; i < bytes.size() / static_cast<size_t>(SizeOf(operand.type)); ++i) {
    tensor.values.push_back(ReadElement(bytes, operand.type, i));
  }
  return tensor;
}

int64_t FirstPoisoned(const Blob& bytes, ElementType type) {
  if (type == ElementType::kBool) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] > 1) return static_cast<int64_t>(i);
    }
    return -1;
  }
  if (type == ElementType::kBFloat16) {
    for (size_t i = 0; i + 2 <= bytes.size(); i += 2) {
      uint16_t half = 0;
      std::memcpy(&half, bytes.data() + i, 2);
      if (half == kBFloat16Poison) return static_cast<int64_t>(i) / 2;
    }
    return -1;
  }
  for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
    uint32_t word = 0;
    std::memcpy(&word, bytes.data() + i, 4);
    if (word == kPoison) return static_cast<int64_t>(i) / SizeOf(type);
  }
  return -1;
}

ForwardResult RunForward(Backend& backend, PreparedOp& op, const OpSpec& spec,
                         const std::vector<Tensor>& inputs, uint64_t seed, int64_t left_out,
                         int64_t in_place) {
  ForwardResult result;
  std::vector<Blob> before;
  const Buffers input_buffers = Fill(backend, inputs, before, nullptr);
  Buffers output_buffers(spec.outputs.size());
  std::vector<void*> outputs(spec.outputs.size(), nullptr);
  for (size_t i = 0; i < spec.outputs.size(); ++i) {
    if (!spec.outputs[i].is_present || static_cast<int64_t>(i) == left_out) continue;
    output_buffers[i] = std::make_unique<WatchedBuffer>(backend, spec.outputs[i].bytes());
    outputs[i] = output_buffers[i]->at();
  }
  const auto shared = static_cast<size_t>(std::max<int64_t>(in_place, 0));
  if (in_place >= 0) outputs[0] = input_buffers[shared]->at();
  Buffers scratch;
  scratch.push_back(Scratch(backend, spec.statistic_bytes));
  scratch.push_back(Scratch(backend, op.workspace().forward));
  const std::vector<const void*> addresses = Addresses(input_buffers);
  op.Forward({addresses, outputs, AddressOf(scratch[0]), AddressOf(scratch[1]), seed});
  backend.Synchronize();

  if (in_place >= 0) {
    result.outputs.push_back(input_buffers[shared]->Read());
    return result;
  }
  CheckGuards(input_buffers, "input", result.faults);
  CheckGuards(output_buffers, "output", result.faults);
  CheckGuards(scratch, "statistic (0) or workspace (1)", result.faults);
  CheckUnchanged(input_buffers, before, "input", result.faults);
  if (scratch[0] != nullptr) result.statistic = scratch[0]->Read();
  for (size_t i = 0; i < spec.outputs.size(); ++i) {
    result.outputs.push_back(output_buffers[i] == nullptr ? Blob() : output_buffers[i]->Read());
    const int64_t poisoned = FirstPoisoned(result.outputs[i], spec.outputs[i].type);
    if (poisoned >= 0) {
      result.faults.push_back(
          fmt::format("it leaves element {} of output {} unwritten", poisoned, i));
    }
  }
  if (FirstPoisoned(result.statistic, ElementType::kInt32) >= 0) {
    result.faults.push_back("it leaves part of the statistic unwritten");
  }
  return result;
}

BackwardResult RunBackward(Backend& backend, PreparedOp& op, const OpSpec& spec,
                           const std::vector<Tensor>& inputs, const ForwardResult& forward,
                           const std::vector<Tensor>& output_gradients, uint64_t seed) {
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < spec.outputs.size(); ++i) {
    outputs.push_back(FromBytes(forward.outputs[i], spec.outputs[i]));
  }
  const Operand statistic_operand{true, ElementType::kInt32, {spec.statistic_bytes / 4}};
  std::vector<Blob> inputs_before, outputs_before, gradients_before;
  const Buffers input_buffers = Fill(backend, inputs, inputs_before, &spec.inputs);
  const Buffers output_buffers = Fill(backend, outputs, outputs_before, &spec.outputs);
  const Buffers arriving = Fill(backend, output_gradients, gradients_before, nullptr);
  const WatchedBuffer statistic(backend, FromBytes(forward.statistic, statistic_operand));
  void* const at_statistic = spec.statistic_bytes == 0 ? nullptr : statistic.at();
  Buffers scratch;
  scratch.push_back(Scratch(backend, op.workspace().backward));
  Buffers gradients(spec.inputs.size());
  const auto input_addresses = Addresses(input_buffers);
  const auto output_addresses = Addresses(output_buffers);
  const auto arriving_addresses = Addresses(arriving);
  const BackwardCall call{input_addresses, output_addresses,      arriving_addresses,
                          at_statistic,    AddressOf(scratch[0]), seed};
  BackwardResult result;
  result.gradients.resize(spec.inputs.size());
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    if (!spec.inputs[i].has_gradient) continue;
    gradients[i] = std::make_unique<WatchedBuffer>(backend, spec.inputs[i].bytes());
    op.BackwardInput(call, i, gradients[i]->at());
    backend.Synchronize();
    result.gradients[i] = gradients[i]->Read();
    const int64_t poisoned = FirstPoisoned(result.gradients[i], spec.inputs[i].type);
    if (poisoned < 0) continue;
    result.faults.push_back(
        fmt::format("it leaves element {} of the gradient of input {} unwritten", poisoned, i));
  }
  CheckGuards(gradients, "the gradient of input", result.faults);
  CheckGuards(scratch, "the backward workspace", result.faults);
  CheckUnchanged(input_buffers, inputs_before, "in backward input", result.faults);
  CheckUnchanged(output_buffers, outputs_before, "in backward output", result.faults);
  CheckUnchanged(arriving, gradients_before, "the gradient of output", result.faults);
  if (statistic.Read() != forward.statistic)
    result.faults.push_back("backward changes the statistic");
  return result;
}

}  // namespace ckplan::reference
