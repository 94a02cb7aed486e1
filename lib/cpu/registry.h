// The table of operators of the CPU backend: one row per operator, in registry.cc.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "lib/backend/backend.h"
#include "lib/base/result.h"

namespace ckplan::cpu {

// Fails with kUnsupported if there is no kernel for these attributes, shapes or types.
using PrepareFunction = Result<std::unique_ptr<PreparedOp>> (*)(const OpSpec& spec);

struct OpRow {
  std::string_view type;
  PrepareFunction prepare = nullptr;
  std::string_view limits;  // The part of the operator that is not supported.
};

// The rows are in alphabetical order.
std::span<const OpRow> OpRows();
const OpRow* FindOp(std::string_view type);

// Returns the operator of a successful PrepareFunction.
template <typename Op, typename... Arguments>
Result<std::unique_ptr<PreparedOp>> Prepared(Arguments&&... arguments) {
  std::unique_ptr<PreparedOp> op = std::make_unique<Op>(std::forward<Arguments>(arguments)...);
  return op;
}

// Returns UnsupportedOp for this backend.
Error Unsupported(const OpSpec& spec, std::string_view what);

}  // namespace ckplan::cpu
