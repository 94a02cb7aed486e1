#include "cli/ckbench/gpu_model.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "lib/executor/core/fusion.h"
#include "lib/executor/core/program.h"
#include "lib/executor/cuda/traffic/fusion_rules.h"
#include "lib/executor/cuda/traffic/kernel_list.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/timeline.h"

namespace ckplan {
namespace {

using cuda::Kernels;
using cuda::KernelTraffic;

// Parts of the peaks that large kernels are known to reach on H100; docs/gpu-model.md says where
// they come from. They are the same for both programs, so the ratio depends little on them.
constexpr double kMemoryShare = 0.8;
constexpr double kMatrixShare = 0.6;
constexpr double kVectorShare = 0.8;
constexpr double kCachedPerMoved = 2;  // Rate of the second-level cache to that of the memory.
constexpr double kKernelSeconds = 2e-6;

double SecondsOf(const KernelTraffic& kernel, bool is_half, const GpuRates& rates) {
  const double moves = static_cast<double>(kernel.moved()) / rates.bytes_per_second;
  const double accesses = static_cast<double>(kernel.accessed) / rates.cached_bytes_per_second;
  const double flops = static_cast<double>(kernel.flops) /
                       (is_half ? rates.half_flops_per_second : rates.flops_per_second);
  return rates.kernel_seconds + std::max({moves, accesses, flops});
}

class RowsOfStep {
 public:
  RowsOfStep(const StepGraph& step, const GpuModelOptions& options)
      : step_(step), options_(options) {}

  std::vector<GpuModelRow> Find() && {
    AddTorch();
    AddLeast();
    AddOurs();
    std::vector<GpuModelRow> rows;
    for (auto& [key, row] : rows_) rows.push_back(std::move(row));
    return rows;
  }

 private:
  // Rows are ordered by operator, pass, and kernel in the order of its first call.
  using Key = std::pair<std::string, bool>;

  GpuModelRow& RowOf(const std::string& what, bool is_backward) {
    GpuModelRow& row = rows_[{what, is_backward}];
    row.what = what;
    row.is_backward = is_backward;
    return row;
  }

  void Count(const OpSpec& spec, bool is_backward, const Kernels& kernels,
             KernelSum GpuModelRow::*side) {
    const bool is_half = cuda::MultipliesHalves(spec);
    for (const KernelTraffic& kernel : kernels) {
      const std::string what =
          options_.has_kernels ? spec.type + ": " + std::string(kernel.kernel) : spec.type;
      GpuModelRow& row = RowOf(what, is_backward);
      row.*side += KernelSum{1, kernel.moved(), SecondsOf(kernel, is_half, options_.rates)};
      row.is_modelled = cuda::IsModelled(spec.type);
    }
  }

  void AddTorch() {
    const auto torch = TorchKernels(step_, options_.attention);
    for (const NodeId id : step_.nodes.ids()) {
      Count(step_.nodes[id].spec, false, torch[id].forward, &GpuModelRow::torch);
      Count(step_.nodes[id].spec, true, torch[id].backward, &GpuModelRow::torch);
    }
  }

  void AddLeast() {
    if (options_.has_kernels) return;
    for (const StepNode& node : step_.nodes) {
      RowOf(node.spec.type, false).least_bytes += cuda::LeastForward(node.spec);
      if (HasGradient(node)) {
        RowOf(node.spec.type, true).least_bytes += cuda::LeastBackward(node.spec);
      }
    }
  }

  static bool HasGradient(const StepNode& node) {
    return std::any_of(node.spec.inputs.begin(), node.spec.inputs.end(),
                       [](const Operand& input) { return input.has_gradient; });
  }

  void AddOurs() {
    const Schedule schedule = KeepAllInOwnOrder(step_.graph);
    const Timeline timeline = BuildTimeline(step_.graph, schedule);
    const Program program = BuildProgram(step_, step_.graph, schedule, timeline);
    std::vector<bool> is_fused(program.actions.size(), false);
    for (const Fusion& fusion : FindFusions(program, step_, cuda::FusibleLength)) {
      for (const size_t action : fusion.actions) is_fused[action] = true;
      AddFusion(fusion);
    }
    for (size_t i = 0; i < program.actions.size(); ++i) {
      if (!is_fused[i]) AddAction(program, program.actions[i]);
    }
  }

  // A row of its own: operators that run as one.
  void AddFusion(const Fusion& fusion) {
    std::string what;
    for (const ChainedOp& op : fusion.ops) what += (what.empty() ? "" : "+") + op.spec->type;
    const OpSpec& first = *fusion.ops.front().spec;
    cuda::Kernels kernels;
    if (first.type == "BatchNormalization") {
      kernels.push_back(cuda::ForwardKernels(first).front());
    }
    kernels.push_back(FusedKernel(fusion));
    for (const KernelTraffic& kernel : kernels) {
      GpuModelRow& row =
          RowOf(options_.has_kernels ? what + ": " + std::string(kernel.kernel) : what, false);
      row.ours += KernelSum{1, kernel.moved(), SecondsOf(kernel, false, options_.rates)};
    }
  }

  // Reads each operand once that the chain does not make, and writes what is needed later.
  KernelTraffic FusedKernel(const Fusion& fusion) const {
    std::set<std::pair<TensorId, ConstantId>> read;
    int64_t bytes = 0;
    int64_t written = 0;
    for (size_t i = 0; i < fusion.ops.size(); ++i) {
      const StepNode& node = step_.nodes[fusion.calls[i].node];
      for (size_t k = 0; k < node.inputs.size(); ++k) {
        if (i > 0 && k == fusion.ops[i].carried) continue;
        const Binding& input = node.inputs[k];
        if (!read.insert({input.tensor, input.constant}).second) continue;
        bytes += cuda::BytesOf(node.spec.inputs[k]);
      }
      if (fusion.calls[i].outputs[0] != kNoBuffer) written += cuda::BytesOf(node.spec.output(0));
    }
    return cuda::Pass("fused", bytes, written);
  }

  void AddAction(const Program& program, const Action& action) {
    const auto spec_of = [&]() -> const OpSpec& {
      return step_.nodes[program.calls[static_cast<size_t>(action.call)].node].spec;
    };
    if (action.kind == ActionKind::kForward) {
      Count(spec_of(), false, cuda::ForwardKernels(spec_of()), &GpuModelRow::ours);
    }
    if (action.kind == ActionKind::kBackward) {
      const auto position = static_cast<size_t>(action.position);
      Count(spec_of(), true, cuda::BackwardKernels(spec_of(), position), &GpuModelRow::ours);
    }
    if (action.kind != ActionKind::kAdd && action.kind != ActionKind::kCopy) return;
    const TensorId tensor = program.buffers[static_cast<size_t>(action.buffer)].tensor;
    AddGradients(step_.tensors[tensor].bytes(), action.kind == ActionKind::kAdd);
  }

  // Sums of gradients of a tensor with several readers. PyTorch adds them too, but copies none.
  void AddGradients(int64_t bytes, bool is_sum) {
    const KernelTraffic kernel =
        is_sum ? cuda::Pass("add", 2 * bytes, bytes) : cuda::Pass("copy", bytes, bytes);
    const KernelSum sum{1, kernel.moved(), SecondsOf(kernel, false, options_.rates)};
    GpuModelRow& row = RowOf(is_sum ? "gradients: add" : "gradients: copy", true);
    row.ours += sum;
    if (is_sum) row.torch += sum;
    row.least_bytes += is_sum ? kernel.moved() : 0;
  }

  const StepGraph& step_;
  const GpuModelOptions& options_;
  std::map<Key, GpuModelRow> rows_;
};

}  // namespace

KernelSum& KernelSum::operator+=(const KernelSum& other) {
  kernels += other.kernels;
  bytes += other.bytes;
  seconds += other.seconds;
  return *this;
}

GpuRates RatesOf(const Device& device, Precision precision) {
  GpuRates rates;
  rates.bytes_per_second = device.bytes_per_second * kMemoryShare;
  rates.cached_bytes_per_second = rates.bytes_per_second * kCachedPerMoved;
  rates.flops_per_second = precision == Precision::kFloat32
                               ? device.vector_flops_per_second * kVectorShare
                               : device.matrix_flops_per_second * kMatrixShare;
  rates.half_flops_per_second = device.half_matrix_flops_per_second * kMatrixShare;
  rates.kernel_seconds = kKernelSeconds;
  return rates;
}

std::vector<GpuModelRow> ModelOfStep(const StepGraph& step, const GpuModelOptions& options) {
  return RowsOfStep(step, options).Find();
}

}  // namespace ckplan
