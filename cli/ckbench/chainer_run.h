// Runs a strategy as the authors' scripts did: mksch/DP.cpp makes a schedule of it, which
// scripts/run_schedule.py runs with Chainer (9f243e66) and CuPy.
//
// Chainer holds more than Eq. 2 counts, and in places less:
//   * The script keeps the object of each function until the function runs forward again, and with
//     it what the object holds: the result and the scale of local response normalisation, the mask
//     of dropout, the probabilities of softmax cross entropy.
//   * GetItem and Reshape do not copy: their result holds the memory of their input. Nor does
//     backward of Add, Concat and Reshape: the gradients of the inputs hold that of the result.
//   * A second contribution to a gradient makes a new array beside the first.
//   * Gradients of parameters and inputs are made in backward, and stay.
// Workspaces of convolutions, at most 8 MiB, and copies of gradients that are views do not count.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/ckbench/chainer_graph.h"
#include "lib/base/result.h"
#include "lib/base/units.h"

namespace ckplan {

// Returns the most bytes that CuPy's pool holds, with parameters and inputs. `segment_of` has the
// segment of each function, 0 to `segment_count` - 1. With liveness, each array is released after
// its last reader, else by segment (Kusumoto et al. 2019, section 3).
Bytes ChainerPeak(const ChainerNetwork& network, const std::vector<int32_t>& segment_of,
                  int32_t segment_count, bool has_liveness);

// Returns the peak, in bytes, of a schedule that the authors' programs wrote. kInvalidInput: a line
// is neither "compute FUNCTION INPUT...", where backward functions follow the forward ones, nor
// "forget VARIABLE forward" or "forget VARIABLE backward". The message names the line.
Result<Bytes> ChainerPeak(const ChainerNetwork& network, std::string_view schedule,
                          const std::string& where);

}  // namespace ckplan
