// The step of a model on a GPU, kernel by kernel: the bytes that the CUDA backend's kernels move,
// the time that a roofline gives them, and the same for PyTorch's eager kernels.
#pragma once

#include <string>
#include <vector>

#include "cli/ckbench/torch_kernels.h"
#include "lib/files/model/step_graph.h"
#include "lib/problem/cost/cost_model.h"

namespace ckplan {

// Rates that kernels reach: a part of the peaks of a data sheet.
struct GpuRates {
  double bytes_per_second = 0;         // Between memory and the chip.
  double cached_bytes_per_second = 0;  // Between the caches and the threads.
  double flops_per_second = 0;         // For products and convolutions of float32.
  double half_flops_per_second = 0;    // For those of bfloat16.
  double kernel_seconds = 0;           // From the end of one kernel to the work of the next.
};

enum class Precision { kFloat32, kTf32, kBFloat16 };

GpuRates RatesOf(const Device& device, Precision precision);

struct KernelSum {
  int64_t kernels = 0;
  int64_t bytes = 0;  // Moved between memory and the chip.
  double seconds = 0;

  KernelSum& operator+=(const KernelSum& other);
};

// All kernels of one kind of operator in one pass, or of one of its kernels.
struct GpuModelRow {
  std::string what;  // "BatchNormalization", or "BatchNormalization: normalise".
  bool is_backward = false;
  KernelSum ours, torch;
  int64_t least_bytes = 0;  // 0 in rows of single kernels.
  bool is_modelled = true;  // False: the kernels of this operator have no row in the model.
};

struct GpuModelOptions {
  GpuRates rates;
  TorchAttention attention = TorchAttention::kFused;
  bool has_kernels = false;  // One row for each kernel of an operator.
};

// The step that keeps everything, in the model's order, without its loss.
std::vector<GpuModelRow> ModelOfStep(const StepGraph& step, const GpuModelOptions& options);

}  // namespace ckplan
