// The contents of a model's weights, from its file or the files beside it. The executor reads them;
// the planner never does.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/ops/op_spec.h"

namespace ckplan {

class WeightFile {
 public:
  // kIo, kInvalidInput: the model cannot be read again.
  static Result<WeightFile> Open(const std::string& model_path);
  WeightFile(WeightFile&&) noexcept;
  ~WeightFile();

  // The contents of the initializer or Constant with that name, in the operand's element type.
  // Nothing if the file leaves them out, has another number of elements, or refers to another file
  // that is missing or too short.
  std::optional<std::vector<std::byte>> Read(std::string_view name, const Operand& operand) const;

 private:
  struct State;
  explicit WeightFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ckplan
