// The implementation of backward whose needs decide what is kept from forward.
#pragma once

#include <cstdint>

namespace ckplan {

enum class Autograd : uint8_t {
  kMinimal,  // Only what a backward kernel cannot do without.
  kTorch,    // What PyTorch's eager autograd keeps on the CPU.
};

}  // namespace ckplan
