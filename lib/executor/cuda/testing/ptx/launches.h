// Replaces the parts of the CUDA runtime that nvcc's objects call to register and start kernels. A
// launch becomes stream work of the emulated runtime (../emulated/emulated_runtime.h), and
// interprets the object's PTX.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "lib/executor/cuda/testing/ptx/memory.h"

namespace ckplan::ptx {

struct Coverage {
  int64_t launches = 0;
  int64_t instructions = 0;  // Counted per thread.
  // Whether each kernel of this program's objects has run, by its C++ name. Several objects may
  // contain an inline function's kernel; the linker picks one.
  std::map<std::string, bool> kernels;
};
Coverage CoverageSoFar();

Findings& FindingsSoFar();

// From now on, writes a line of JSON for each launch to this file (interpreter.h).
void WriteLaunches(const std::string& path);

// Appends a line per kernel to the file: "run: NAME" or "not run: NAME".
void AppendKernels(const std::string& path);

// Prints both to standard error. Returns true if nothing was found.
bool ReportEmulated();

}  // namespace ckplan::ptx
