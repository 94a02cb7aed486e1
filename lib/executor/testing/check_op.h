// Compares a backend's operator with its reference.
//
//   Forward   equals the reference; the same bits when repeated, at other addresses, in place
//             of an input (elementwise operators) and with an output left out; writes all of
//             its outputs and its statistic, and nothing else.
//   Backward  equals central differences of the reference, for all inputs at once and for each
//             alone, for all arriving gradients and for each alone; reads only what the table
//             in lib/problem/ops allows; the same bits when repeated.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/executor/backend/backend.h"
#include "lib/executor/testing/op_case.h"
#include "lib/problem/ops/families.h"

namespace ckplan::reference {

// Random contents are generated from the seed. Returns the faults, each with the case and the seed.
std::vector<std::string> CheckOp(Backend& backend, const CaseRow& row, uint64_t seed);

}  // namespace ckplan::reference

namespace ckplan {

// Tests why operators are rejected. Each row has an operator in op_case.h's grammar and a part of
// the message. op_case.h's own rows are operators that are accepted.
struct Refusal {
  reference::CaseRow op;
  std::string_view message;
  ErrorCode code = ErrorCode::kInvalidInput;
};

inline constexpr ErrorCode kUnsupported = ErrorCode::kUnsupported;

// Requests the gradient of every float input of the batch; backward reads the constants. The
// statistic is larger than any operator in these tests needs.
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
