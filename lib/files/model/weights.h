// The contents of a model's weights, from its file or files next to it, and tensor files for other
// programs. Only the executor reads and writes them, never the planner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/problem/ops/op_spec.h"

namespace ckplan {

// Why a model lacks the contents of a weight. Such models are valid inputs.
enum class AbsentWeight {
  kLeftOut,     // Neither in the model nor in a file next to it.
  kNoFile,      // In a file next to the model that is missing or empty.
  kUnreadable,  // In the model, but with a wrong type or element count.
  kTooLarge,    // In a model file above protobuf's limit of 2 GiB.
};
inline constexpr size_t kAbsentWeightKinds = 4;

struct WeightContents {
  std::optional<std::vector<std::byte>> bytes;
  AbsentWeight absent = AbsentWeight::kLeftOut;  // The reason, if `bytes` is empty.
};

class WeightFile {
 public:
  // Fails with kIo or kInvalidInput if the model can't be read again.
  static Result<WeightFile> Open(const std::string& model_path);
  WeightFile(WeightFile&&) noexcept;
  ~WeightFile();

  // Returns the contents of the initializer or Constant with that name, in the operand's element
  // type. Fails with kInvalidInput if the contents should be in an existing file next to the model
  // but are not, or if that file's name is invalid or outside the model's folder.
  Result<WeightContents> Read(std::string_view name, const Operand& operand) const;

 private:
  struct State;
  explicit WeightFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Returns the sorted, unique paths of all files that the model's tensors refer to, whether or not
// they exist. Returns none if the model can't be read. Reads only fields of the model, not
// contents.
std::vector<std::string> ExternalFiles(const std::string& model_path);

struct NamedTensor {
  std::string name;
  ElementType type = ElementType::kFloat32;
  std::vector<int64_t> dims;
  std::string contents;  // Row-major, little-endian.
};

// Protobuf can't read larger messages.
inline constexpr int64_t kMaxTensorFileBytes = std::numeric_limits<int32_t>::max();

// Returns the bytes of an ONNX model without nodes, with `tensors` as initializers, in order. Their
// contents together must not exceed kMaxTensorFileBytes.
std::string TensorFileBytes(const std::string& graph_name, std::vector<NamedTensor> tensors);

}  // namespace ckplan
