// Identifies the planned model and its variant: dimensions, input shapes and activation type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"

namespace ckplan {

struct ModelIdentity {
  std::string name;    // File name without folders.
  std::string sha256;  // The hash of a model's graph, or of a graph file's bytes.
  std::map<std::string, int64_t> opsets;  // Domain ("" is ai.onnx) to version.

  bool operator==(const ModelIdentity&) const = default;
};

// Returns the opsets with domain names as valid UTF-8, as in plan files. If several domains become
// the same name, the first wins.
std::map<std::string, int64_t> OpsetsInFiles(const ModelIdentity& model);

// Fails with kCheckFailed if the model at `path`, with the hash `sha256`, is not the planned one.
Result<Done> CheckSameModel(const ModelIdentity& planned, const std::string& path,
                            const std::string& sha256);

using DimSizes = std::map<std::string, int64_t>;
using InputShapes = std::map<std::string, std::vector<int64_t>>;

// How float tensors of the batch, and their gradients, are stored. Parameters, their gradients and
// the statistics that nodes save are not affected.
enum class ActivationType { kOfModel, kFloat32, kBFloat16 };

inline constexpr std::string_view kActivationTypeWords[] = {"model", "float32", "bf16"};
inline std::string_view NameOf(ActivationType type) {
  return kActivationTypeWords[static_cast<size_t>(type)];
}

// Which attention subgraphs are fused into one operator (lib/files/model/fuse_attention.h).
// kAttention: all that are recognised. kCaptured: those that were one scaled_dot_product_attention
// call in PyTorch.
enum class FusedOperators { kNone, kAttention, kCaptured };

inline constexpr std::string_view kFusedOperatorsWords[] = {"none", "attention", "captured"};
inline std::string_view NameOf(FusedOperators fused) {
  return kFusedOperatorsWords[static_cast<size_t>(fused)];
}

// kCaptured: operators that were one PyTorch operation are restored to it, and parameters and
// buffers are those that the file lists (lib/files/model/restore.h).
enum class RestoredOperators { kNone, kCaptured };

inline constexpr std::string_view kRestoredOperatorsWords[] = {"none", "captured"};
inline std::string_view NameOf(RestoredOperators restored) {
  return kRestoredOperatorsWords[static_cast<size_t>(restored)];
}

// The gradient of an operator that rounds: the gradient of its result (straight-through estimation,
// as in training quantized networks), or none.
enum class Rounding { kStraightThrough, kNoGradient };

inline constexpr std::string_view kRoundingWords[] = {"straight-through", "no-gradient"};
inline std::string_view NameOf(Rounding rounding) {
  return kRoundingWords[static_cast<size_t>(rounding)];
}

}  // namespace ckplan
