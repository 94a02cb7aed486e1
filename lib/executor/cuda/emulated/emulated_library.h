// Handles and descriptors of the replaced libraries, which are watched: each is alive when it is
// used, and those that are left are counted (EmulatedUse::objects).
#pragma once

#include <map>
#include <memory>

#include "lib/base/check.h"
#include "lib/executor/cuda/emulated/emulated_runtime.h"

namespace ckplan::cuda {

template <typename Object>
class EmulatedObjects {
 public:
  template <typename Handle>
  Handle Add() {
    auto object = std::make_unique<Object>();
    auto* const handle = reinterpret_cast<Handle>(object.get());
    alive_.emplace(handle, std::move(object));
    CountEmulatedObjects(1);
    return handle;
  }
  void Remove(const void* handle) {
    if (IsPlanted("descriptors are kept")) return;
    CKPLAN_CHECK(alive_.erase(handle) == 1, "what is destroyed was created");
    CountEmulatedObjects(-1);
  }
  Object& Find(const void* handle) {
    const auto found = alive_.find(handle);
    CKPLAN_CHECK(found != alive_.end(), "a library is called with a handle that is alive");
    return *found->second;
  }

 private:
  std::map<const void*, std::unique_ptr<Object>> alive_;
};

}  // namespace ckplan::cuda
