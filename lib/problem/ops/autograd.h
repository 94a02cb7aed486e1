// The implementation of backward. It decides which tensors backward reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ckplan {

enum class Autograd : uint8_t {
  kMinimal,    // The minimum that a backward kernel needs.
  kTorch,      // The tensors that PyTorch's eager autograd saves on the CPU.
  kTorchCuda,  // The tensors that PyTorch's eager autograd saves on a GPU.
};

inline constexpr std::string_view kAutogradWords[] = {"minimal", "torch", "torch-cuda"};
inline bool IsTorch(Autograd autograd) { return autograd != Autograd::kMinimal; }
inline std::string_view NameOf(Autograd autograd) {
  return kAutogradWords[static_cast<size_t>(autograd)];
}

}  // namespace ckplan
