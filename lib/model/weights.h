// The contents of a model's weights, where its file or the files beside it hold them. The planner
// never reads them; the executor does.
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

  // The contents of the initializer or Constant of that name, in the operand's element type.
  // Nothing where they cannot be had: the file leaves them out, has another number of elements, or
  // names another file that is missing or too short.
  std::optional<std::vector<std::byte>> Read(std::string_view name, const Operand& operand) const;

 private:
  struct State;
  explicit WeightFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ckplan
