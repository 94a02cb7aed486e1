// Descriptors of the emulated cuDNN (emulated_cudnn.cc): objects whose attributes are set one by
// one, then finalized. A call that breaks the rules of cuDNN's backend interface ends the program:
// an attribute that the descriptor doesn't have, with the wrong type or count, or missing; or a
// descriptor that is changed after it was finalized, or used before.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/check.h"

namespace ckplan::cuda {

using EmulatedName = cudnnBackendAttributeName_t;

struct EmulatedDescriptor {
  struct Attribute {
    int64_t count = 0;
    std::vector<unsigned char> bytes;
    std::vector<std::shared_ptr<const EmulatedDescriptor>>
        parts;  // For attributes that hold descriptors.
  };

  cudnnBackendDescriptorType_t kind{};
  bool is_finalized = false;
  std::map<EmulatedName, Attribute> attributes;

  bool Has(EmulatedName name) const { return attributes.contains(name); }
  const EmulatedDescriptor& Part(EmulatedName name) const {
    return *attributes.at(name).parts.at(0);
  }
  template <typename Value>
  Value Get(EmulatedName name, int64_t index = 0) const {
    const Attribute& attribute = attributes.at(name);
    CKPLAN_CHECK(index < attribute.count, "only values that an attribute has are read");
    Value value{};
    std::memcpy(&value, attribute.bytes.data() + static_cast<size_t>(index) * sizeof(Value),
                sizeof(Value));
    return value;
  }
  std::vector<int64_t> Integers(EmulatedName name) const;
  std::string Text(EmulatedName name) const;
  void SetInteger(EmulatedName name, int64_t value);
  void SetPart(EmulatedName name, std::shared_ptr<const EmulatedDescriptor> part);
};

// Live descriptors. They count as objects of EmulatedUse.
cudnnBackendDescriptor_t AddEmulatedDescriptor(cudnnBackendDescriptorType_t kind);
void RemoveEmulatedDescriptor(cudnnBackendDescriptor_t handle);
std::shared_ptr<EmulatedDescriptor> FindEmulatedDescriptor(cudnnBackendDescriptor_t handle);

// Sets an attribute that descriptors of this kind must have.
void SetEmulatedAttribute(EmulatedDescriptor& descriptor, EmulatedName name,
                          cudnnBackendAttributeType_t type, int64_t count, const void* values);
// Checks that all attributes required for this kind of descriptor are set.
void CheckEmulatedComplete(const EmulatedDescriptor& descriptor);

// Returns a tensor's address in memory.
using EmulatedPointers = std::function<void*(const EmulatedDescriptor& tensor)>;

// True if the tensor's elements are dense and in this order.
bool IsEmulatedOrder(const EmulatedDescriptor& tensor, bool is_channels_last);

}  // namespace ckplan::cuda
