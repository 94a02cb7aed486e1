// Decodes a kernel, and the functions that it calls, from its module's text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/executor/cuda/testing/ptx/module_text.h"
#include "lib/executor/cuda/testing/ptx/program.h"

namespace ckplan::ptx {

// Maps the names of a module's global variables to their addresses.
using GlobalAddresses = std::map<std::string, uint64_t, std::less<>>;

// Fails with kUnsupported if the text has an instruction, or a form of one, that the interpreter
// doesn't support. The program refers to the module's text.
Result<Program> DecodeKernel(const ModuleText& module, std::string_view name,
                             const GlobalAddresses& globals);

// The instructions that the interpreter supports.

// An instruction's operands.
struct OperandForm {
  enum Kind { kNone, kResult, kLoad, kStore };
  Kind kind = kResult;
  size_t count = 0;  // For kResult: the operands after the result.
};

struct InstructionShape {
  Instruction instruction;  // Without operands.
  OperandForm operands;
};

// Parses an instruction's words, such as "ld", "global", "v4", "f32". Returns nothing if one of
// them is unknown.
std::optional<InstructionShape> ShapeOf(const std::vector<std::string_view>& words);

}  // namespace ckplan::ptx
