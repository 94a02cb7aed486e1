// Compares an operator of a backend with its reference.
//
//   Forward   equals the reference; the same bits twice, at other addresses, in place of an input
//             (elementwise operators) and with an output left out; writes all of its outputs and
//             statistic, nothing else, and no input.
//   Backward  equals central differences of the reference, for all inputs at once and for each
//             alone, for all arriving gradients and for each alone; sees only what the table of
//             lib/problem/ops lets it read; the same bits twice.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/executor/backend/backend.h"
#include "lib/executor/reference/op_case.h"
#include "lib/problem/ops/families.h"

namespace ckplan::reference {

// Random contents are generated from the seed. Returns the faults, each with the case and the seed;
// empty if there are none.
std::vector<std::string> CheckOp(Backend& backend, const CaseRow& row, uint64_t seed);

}  // namespace ckplan::reference

namespace ckplan {

// Tests the reasons for which operators are refused. Each row has an operator in the grammar of
// op_case.h and a part of the message. The rows of op_case.h hold operators that are accepted.
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
    spec.inputs[i].has_gradient = parsed.contents[i].needs_gradient;
    spec.inputs[i].is_read_by_backward = parsed.contents[i].is_constant;
  }
  spec.statistic_bytes = int64_t{1} << 40;
  return spec;
}

inline void CheckRefusal(const OpSpec& spec, std::string_view message, ErrorCode code) {
  const Result<Done> judged = ValidateOp(spec);
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
