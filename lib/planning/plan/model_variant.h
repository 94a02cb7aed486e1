// Which model is planned, and in which variant: its dimensions, the shapes of its inputs, and how
// its activations are stored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ckplan {

struct ModelIdentity {
  std::string name;    // File name without folders.
  std::string sha256;  // The hash of a model's graph, or of a graph file's bytes.
  std::map<std::string, int64_t> opsets;  // Domain ("" is ai.onnx) to version.

  bool operator==(const ModelIdentity&) const = default;
};

// Returns the opsets with domain names in well-formed UTF-8, as in plan files. If several
// domains have the same written name, the first counts.
std::map<std::string, int64_t> OpsetsInFiles(const ModelIdentity& model);

using DimSizes = std::map<std::string, int64_t>;
using InputShapes = std::map<std::string, std::vector<int64_t>>;

// How float tensors of the batch, and their gradients, are stored. Parameters, their gradients and
// the statistics that nodes save are not affected.
enum class ActivationType { kOfModel, kFloat32, kBFloat16 };

inline constexpr std::string_view kActivationTypeWords[] = {"model", "float32", "bf16"};
inline std::string_view NameOf(ActivationType type) {
  return kActivationTypeWords[static_cast<size_t>(type)];
}

// Which attentions that exporters write operator by operator are read as one operator
// (lib/files/model/fuse_attention.h). kAttention: all that are recognised. kCaptured: those that
// were one operation in PyTorch, scaled_dot_product_attention.
enum class FusedOperators { kNone, kAttention, kCaptured };

inline constexpr std::string_view kFusedOperatorsWords[] = {"none", "attention", "captured"};
inline std::string_view NameOf(FusedOperators fused) {
  return kFusedOperatorsWords[static_cast<size_t>(fused)];
}

// Whether operators that an exporter wrote for one PyTorch operation are read as that operation,
// and parameters and buffers as the file lists them (lib/files/model/restore.h).
enum class RestoredOperators { kNone, kCaptured };

inline constexpr std::string_view kRestoredOperatorsWords[] = {"none", "captured"};
inline std::string_view NameOf(RestoredOperators restored) {
  return kRestoredOperatorsWords[static_cast<size_t>(restored)];
}

// What the gradient of an operator that rounds is: that of its result (straight-through estimation,
// by which quantized networks are trained), or nothing, as its derivative is.
enum class Rounding { kStraightThrough, kNoGradient };

inline constexpr std::string_view kRoundingWords[] = {"straight-through", "no-gradient"};
inline std::string_view NameOf(Rounding rounding) {
  return kRoundingWords[static_cast<size_t>(rounding)];
}

}  // namespace ckplan
