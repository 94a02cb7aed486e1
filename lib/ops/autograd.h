// Which implementation of backward determines what is kept from forward.
#pragma once

#include <cstdint>

namespace ckplan {

enum class Autograd : uint8_t {
  kMinimal,  // What a kernel of backward cannot do without.
  kTorch,    // What PyTorch's eager autograd keeps on the CPU.
};

}  // namespace ckplan
