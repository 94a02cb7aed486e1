// Decodes a kernel, and the functions that it calls, from the text of its module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/result.h"
#include "lib/executor/cuda/ptx/module_text.h"
#include "lib/executor/cuda/ptx/program.h"

namespace ckplan::ptx {

// Maps the names of a module's global variables to their addresses.
using GlobalAddresses = std::map<std::string, uint64_t, std::less<>>;

// Fails with kUnsupported if the text has an instruction, or a form of it, that the interpreter
// does not know. The program has views of the module's text.
Result<Program> DecodeKernel(const ModuleText& module, std::string_view name,
                             const GlobalAddresses& globals);

// The instructions that the interpreter knows.

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
