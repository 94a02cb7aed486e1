// The contents of a model's weights, from its file or the files beside it, and files of tensors for
// other programs. The executor reads and writes them; the planner never does.
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

// The reason why a model lacks the contents of a weight. Such models are ordinary inputs.
enum class AbsentWeight {
  kLeftOut,     // Neither in the model nor in a file beside it.
  kNoFile,      // In a file beside the model that is missing or empty.
  kUnreadable,  // In the model, but of an unsupported type or with another number of elements.
  kTooLarge,    // In a model file of more than 2 GiB, which protobuf does not read.
};
inline constexpr size_t kAbsentWeightKinds = 4;

struct WeightContents {
  std::optional<std::vector<std::byte>> bytes;
  AbsentWeight absent = AbsentWeight::kLeftOut;  // The reason if there are no contents.
};

class WeightFile {
 public:
  // kIo, kInvalidInput: the model cannot be read again.
  static Result<WeightFile> Open(const std::string& model_path);
  WeightFile(WeightFile&&) noexcept;
  ~WeightFile();

  // Returns the contents of the initializer or Constant with that name, in the operand's element
  // type. kInvalidInput: the contents belong in an existing file beside the model that does not
  // hold them, or the name of that file is invalid or leads out of the model's folder.
  Result<WeightContents> Read(std::string_view name, const Operand& operand) const;

 private:
  struct State;
  explicit WeightFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Returns the paths of all files that the model's tensors refer to, sorted, each once, whether they
// exist or not. Returns none if the model cannot be read. Only the fields of the file are read, not
// their contents.
std::vector<std::string> ExternalFiles(const std::string& model_path);

struct NamedTensor {
  std::string name;
  ElementType type = ElementType::kFloat32;
  std::vector<int64_t> dims;
  std::string contents;  // Row-major, little-endian.
};

// Protobuf cannot read messages larger than this.
inline constexpr int64_t kMaxTensorFileBytes = std::numeric_limits<int32_t>::max();

// Returns the bytes of an ONNX model without nodes, whose initializers are `tensors`, in their
// order. Their contents together must not exceed kMaxTensorFileBytes.
std::string TensorFileBytes(const std::string& graph_name, std::vector<NamedTensor> tensors);

}  // namespace ckplan
