// Takes the place of the parts of the CUDA runtime that nvcc's objects call to register their
// kernels and to start them. A launch becomes work of a stream of the emulated runtime
// (../emulated/emulated_runtime.h), and plays the PTX that the object holds.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "lib/executor/cuda/ptx/memory.h"

namespace ckplan::ptx {

struct Coverage {
  int64_t launches = 0;
  int64_t instructions = 0;  // Each thread counts.
  // Whether each kernel of this program's objects has run, by its name as written in C++. Several
  // objects may hold the kernel of an inline function; the linker takes one of them.
  std::map<std::string, bool> kernels;
};
Coverage CoverageSoFar();

Findings& FindingsSoFar();

// Writes a line of JSON for each launch from now on to this file (interpreter.h).
void WriteLaunches(const std::string& path);

// Appends a line for each kernel to the file: "run: NAME" or "not run: NAME".
void AppendKernels(const std::string& path);

// Prints both to standard error. Returns whether nothing was found.
bool ReportEmulated();

}  // namespace ckplan::ptx
