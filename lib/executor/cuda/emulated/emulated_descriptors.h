// Descriptors of the replaced cuDNN (emulated_cudnn.cc): objects with attributes, which are set one
// by one, then finalized. A call that breaks the rules of cuDNN's backend interface ends the
// program: an attribute of another kind of descriptor, of another type or count, or one that is
// missing, a descriptor that is changed after it was finalized, or used before that.
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
    std::vector<std::shared_ptr<const EmulatedDescriptor>> parts;  // If it holds descriptors.
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

// The descriptors that are alive. They count as objects of EmulatedUse.
cudnnBackendDescriptor_t AddEmulatedDescriptor(cudnnBackendDescriptorType_t kind);
void RemoveEmulatedDescriptor(cudnnBackendDescriptor_t handle);
std::shared_ptr<EmulatedDescriptor> FindEmulatedDescriptor(cudnnBackendDescriptor_t handle);

// Sets an attribute, which the kind of the descriptor must have.
void SetEmulatedAttribute(EmulatedDescriptor& descriptor, EmulatedName name,
                          cudnnBackendAttributeType_t type, int64_t count, const void* values);
// Checks that nothing is missing that the kind of the descriptor needs.
void CheckEmulatedComplete(const EmulatedDescriptor& descriptor);

// Gives the address of a tensor in memory.
using EmulatedPointers = std::function<void*(const EmulatedDescriptor& tensor)>;

// Returns whether the elements of a tensor lie in this order, without gaps.
bool IsEmulatedOrder(const EmulatedDescriptor& tensor, bool is_channels_last);

}  // namespace ckplan::cuda
