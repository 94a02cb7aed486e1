// The instructions that the interpreter knows.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "lib/executor/cuda/ptx/program.h"

namespace ckplan::ptx {

// Which operands an instruction has.
struct OperandForm {
  enum Kind { kNone, kResult, kLoad, kStore };
  Kind kind = kResult;
  size_t count = 0;  // The operands of kResult after the result.
};

struct InstructionShape {
  Instruction instruction;  // Without operands.
  OperandForm operands;
};

// Returns what the words of an instruction say, such as "ld", "global", "v4", "f32"; nothing if one
// of them is not known.
std::optional<InstructionShape> ShapeOf(const std::vector<std::string_view>& words);

}  // namespace ckplan::ptx
