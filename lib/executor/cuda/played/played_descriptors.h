// Descriptors of the replaced cuDNN (played_cudnn.cc): objects with attributes, which are set one
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

using PlayedName = cudnnBackendAttributeName_t;

struct PlayedDescriptor {
  struct Attribute {
    int64_t count = 0;
    std::vector<unsigned char> bytes;
    std::vector<std::shared_ptr<const PlayedDescriptor>> parts;  // If it holds descriptors.
  };

  cudnnBackendDescriptorType_t kind{};
  bool is_finalized = false;
  std::map<PlayedName, Attribute> attributes;

  bool Has(PlayedName name) const { return attributes.contains(name); }
  const PlayedDescriptor& Part(PlayedName name) const { return *attributes.at(name).parts.at(0); }
  template <typename Value>
  Value Get(PlayedName name, int64_t index = 0) const {
    const Attribute& attribute = attributes.at(name);
    CKPLAN_CHECK(index < attribute.count, "an attribute has as many values as are read");
    Value value{};
    std::memcpy(&value, attribute.bytes.data() + static_cast<size_t>(index) * sizeof(Value),
                sizeof(Value));
    return value;
  }
  std::vector<int64_t> Integers(PlayedName name) const;
  std::string Text(PlayedName name) const;
  void SetInteger(PlayedName name, int64_t value);
  void SetPart(PlayedName name, std::shared_ptr<const PlayedDescriptor> part);
};

// The descriptors that are alive. They count as objects of PlayedUse.
cudnnBackendDescriptor_t AddPlayedDescriptor(cudnnBackendDescriptorType_t kind);
void RemovePlayedDescriptor(cudnnBackendDescriptor_t handle);
std::shared_ptr<PlayedDescriptor> FindPlayedDescriptor(cudnnBackendDescriptor_t handle);

// Sets an attribute, which the kind of the descriptor must have.
void SetPlayedAttribute(PlayedDescriptor& descriptor, PlayedName name,
                        cudnnBackendAttributeType_t type, int64_t count, const void* values);
// Checks that nothing is missing that the kind of the descriptor needs.
void CheckPlayedComplete(const PlayedDescriptor& descriptor);

// Gives the address of a tensor in memory.
using PlayedPointers = std::function<void*(const PlayedDescriptor& tensor)>;

// Returns whether the elements of a tensor lie in this order, without gaps.
bool IsPlayedOrder(const PlayedDescriptor& tensor, bool is_channels_last);

}  // namespace ckplan::cuda
