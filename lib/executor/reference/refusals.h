// Tests the reasons for which operators are refused. Each row has an operator in the grammar of
// op_case.h and a part of the message. The rows of families.h hold operators that are accepted.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lib/executor/reference/op_case.h"
#include "lib/problem/ops/families.h"

namespace ckplan {

struct Refusal {
  reference::CaseRow op;
  std::string_view message;
  ErrorCode code = ErrorCode::kInvalidInput;
};

inline constexpr ErrorCode kUnsupported = ErrorCode::kUnsupported;

// The gradient of every float input of the batch is requested, and backward reads the constants.
// The statistic has more bytes than any operator in these tests needs.
inline OpSpec SpecOf(const reference::CaseRow& row) {
  const reference::OpCase parsed = ParseCase(row);
  OpSpec spec = parsed.spec;
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    spec.inputs[i].has_gradient = parsed.contents[i].wants_gradient;
    spec.inputs[i].is_read_by_backward = parsed.contents[i].is_constant;
  }
  spec.statistic_bytes = int64_t{1} << 40;
  return spec;
}

inline void CheckRefusal(const OpSpec& spec, std::string_view message, ErrorCode code) {
  const Result<Done> judged = JudgeOp(spec);
  REQUIRE(!judged.ok());
  CAPTURE(judged.error().message);
  CHECK(judged.error().code == code);
  CHECK(judged.error().message.find(message) != std::string::npos);
}

inline void CheckRefusals(std::span<const Refusal> rows) {
  for (const Refusal& row : rows) {
    CAPTURE(row.op.type);
    CAPTURE(row.op.operands);
    CAPTURE(row.op.attributes);
    CheckRefusal(SpecOf(row.op), row.message, row.code);
  }
}

}  // namespace ckplan
