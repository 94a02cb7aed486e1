// Decodes a kernel, and the functions that it calls, from the text of its module.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

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

}  // namespace ckplan::ptx
