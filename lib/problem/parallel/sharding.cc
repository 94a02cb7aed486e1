#include "lib/problem/parallel/sharding.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "lib/base/units.h"

namespace ckplan {
namespace {

// DeepSpeed's nccl_start_alignment_factor.
constexpr int64_t kFlatAlignment = 2;

// A sum of sizes that remembers whether it overflowed.
class ByteSum {
 public:
  void Add(std::optional<int64_t> amount) {
    sum_ = sum_ && amount ? CheckedAdd(*sum_, *amount) : std::nullopt;
  }
  bool overflows() const { return !sum_.has_value(); }
  Bytes bytes() const { return Bytes(sum_.value_or(0)); }

 private:
  std::optional<int64_t> sum_ = 0;
};

int64_t RoundedQuotient(int64_t amount, int64_t by) { return amount / by + (amount % by != 0); }

// Which constants a system divides: see the table in the header.
struct Divided {
  bool parameters = false;
  bool gradients = false;
};
Divided DividedBy(ShardingSystem system) {
  switch (system) {
    case ShardingSystem::kZero1:
      return {false, false};
    case ShardingSystem::kZero2:
      return {false, true};
    case ShardingSystem::kZero3:
    case ShardingSystem::kFsdp:
      break;
  }
  return {true, true};
}

class Sharder {
 public:
  explicit Sharder(const Sharding& sharding)
      : sharding_(sharding), divided_(DividedBy(sharding.system)) {}

  void Add(const Parameter& parameter) {
    const int64_t bytes = parameter.bytes.count();
    if (parameter.kind == Parameter::Kind::kBuffer || parameter.elements == 0) {
      return parameters_.Add(bytes);
    }
    const bool is_trained = parameter.kind == Parameter::Kind::kTrained;
    if (is_trained && divided_.gradients) AddWhole(parameter.readers, bytes);
    if (divided_.parameters) return AddDividedByItself(parameter, is_trained);
    parameters_.Add(bytes);
    if (!is_trained) return;
    flat_elements_[bytes / parameter.elements].Add(parameter.elements);
    if (!divided_.gradients) gradients_.Add(bytes);
  }

  Result<ShardedConstants> Finish() && {
    for (const auto& [element_bytes, elements] : flat_elements_) AddFlat(element_bytes, elements);
    for (const auto& [element_bytes, bytes] : flat_parts_) {
      AddOptimized(bytes.bytes().count(), element_bytes);
    }
    ByteSum unsharded = persistent_;
    Bytes most;
    for (const auto& [node, whole] : whole_) {
      most = std::max(most, whole.bytes());
      if (whole.overflows()) unsharded.Add(std::nullopt);
    }
    unsharded.Add(most.count());
    for (const ByteSum* sum : {&parameters_, &gradients_, &optimized_, &unsharded}) {
      if (!sum->overflows()) continue;
      return MakeError(ErrorCode::kInvalidInput,
                       fmt::format("what {} pads the parameters to overflows", TextOf(sharding_)));
    }
    return ShardedConstants{parameters_.bytes(), gradients_.bytes(), optimized_.bytes(),
                            unsharded.bytes(), Merged(std::move(tensors_))};
  }

 private:
  void AddWhole(const std::vector<NodeId>& readers, std::optional<int64_t> bytes) {
    for (const NodeId reader : readers) whole_[reader].Add(bytes);
  }

  // Each device holds as many elements (or rows) as the first one needs; gathering from all devices
  // includes the padding of the last one.
  void AddDividedByItself(const Parameter& parameter, bool is_trained) {
    const bool is_by_rows = sharding_.system == ShardingSystem::kFsdp;
    const int64_t units = is_by_rows ? parameter.rows : parameter.elements;
    const int64_t unit_bytes = parameter.bytes.count() / units;
    const int64_t held = RoundedQuotient(units, sharding_.devices) * unit_bytes;
    const std::optional<int64_t> gathered = CheckedMul(held, sharding_.devices);
    parameters_.Add(held);
    if (is_trained) {
      const int64_t element_bytes = parameter.AsOptimized().element_bytes;
      gradients_.Add(held);
      optimized_.Add(held);
      if (is_by_rows) {
        AddOptimized(held, element_bytes);
      } else {
        flat_parts_[element_bytes].Add(held);
      }
    }
    const bool persists =
        sharding_.system == ShardingSystem::kZero3 && parameter.elements <= kPersistentElements;
    if (persists) return persistent_.Add(gathered);
    AddWhole(parameter.readers, gathered);
  }

  // All trained parameters of one type are laid out one after the other, and padded so that the
  // parts are equal.
  void AddFlat(int64_t element_bytes, const ByteSum& elements) {
    const int64_t parts =
        RoundedQuotient(elements.bytes().count(), kFlatAlignment * sharding_.devices);
    const std::optional<int64_t> held = CheckedMul(kFlatAlignment * parts, element_bytes);
    optimized_.Add(held);
    AddOptimized(held.value_or(0), element_bytes);
    if (divided_.gradients) gradients_.Add(held);
    if (elements.overflows()) optimized_.Add(std::nullopt);
  }

  // Adds one tensor of what the optimizer keeps state for.
  void AddOptimized(int64_t bytes, int64_t element_bytes) {
    tensors_.push_back({bytes / element_bytes, element_bytes, 1});
  }

  const Sharding sharding_;
  const Divided divided_;
  ByteSum parameters_;
  ByteSum gradients_;
  ByteSum optimized_;
  ByteSum persistent_;
  std::map<NodeId, ByteSum> whole_;           // Bytes that are whole while a node runs.
  std::map<int64_t, ByteSum> flat_elements_;  // Elements by the bytes of one element.
  // The bytes of a device's parts of all parameters, which DeepSpeed keeps as one list, by the
  // bytes of one element.
  std::map<int64_t, ByteSum> flat_parts_;
  std::vector<OptimizedTensors> tensors_;
};

}  // namespace

Result<ShardedConstants> ShardConstants(std::span<const Parameter> parameters,
                                        const Sharding& sharding) {
  Sharder sharder(sharding);
  for (const Parameter& parameter : parameters) sharder.Add(parameter);
  return std::move(sharder).Finish();
}

}  // namespace ckplan
