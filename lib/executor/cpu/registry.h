// The table of operators of the CPU backend, which registry.cc joins.
#pragma once

#include <memory>
#include <string_view>

#include "lib/executor/backend/op_rows.h"

namespace ckplan::cpu {

using PrepareFunction = Result<std::unique_ptr<PreparedOp>> (*)(const OpSpec& spec);
using OpRow = OpRowOf<PrepareFunction>;

const OpTable<OpRow>& Table();

// Returns UnsupportedOp for this backend.
Error Unsupported(const OpSpec& spec, std::string_view what);

}  // namespace ckplan::cpu
