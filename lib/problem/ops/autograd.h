// The implementation of backward whose needs decide what is kept from forward.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ckplan {

enum class Autograd : uint8_t {
  kMinimal,    // Only what a backward kernel cannot do without.
  kTorch,      // What PyTorch's eager autograd keeps on the CPU.
  kTorchCuda,  // What PyTorch's eager autograd keeps on a GPU.
};

inline constexpr std::string_view kAutogradWords[] = {"minimal", "torch", "torch-cuda"};
inline bool IsTorch(Autograd autograd) { return autograd != Autograd::kMinimal; }
inline std::string_view NameOf(Autograd autograd) {
  return kAutogradWords[static_cast<size_t>(autograd)];
}

}  // namespace ckplan
