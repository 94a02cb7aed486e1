// Takes the place of the parts of the CUDA runtime that nvcc's objects call to register their
// kernels and to start them. A launch becomes work of a stream of the emulated runtime
// (../played/played_runtime.h), and plays the PTX that the object holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/cuda/ptx/findings.h"

namespace ckplan::ptx {

struct Coverage {
  int64_t kernels = 0;  // In all objects of this program.
  int64_t launches = 0;
  int64_t instructions = 0;          // Each thread counts.
  std::vector<std::string> not_run;  // The names of kernels, as written in C++.
};
Coverage CoverageSoFar();

Findings& FindingsSoFar();

// Writes a line of JSON for each launch from now on to this file (launch_line.h).
void WriteLaunches(const std::string& path);

// Prints both to standard error. Returns whether nothing was found.
bool ReportPlayed(bool lists_not_run);

}  // namespace ckplan::ptx
