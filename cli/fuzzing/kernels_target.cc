// Runs operators with any attributes and shapes on the CPU backend. Once lib/problem/ops accepts an
// operator, its kernel must not touch memory beyond its operands. Each operand has a block of
// exactly its size, so that the address sanitizer detects accesses beyond it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "cli/fuzzing/fuzz_targets.h"
#include "cli/fuzzing/kernel_case.h"
#include "lib/base/check.h"
#include "lib/base/rng.h"
#include "lib/executor/cpu/cpu_backend.h"
#include "lib/executor/testing/check_run.h"
#include "lib/executor/testing/op_case.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_table.h"

namespace ckplan {
namespace {

using reference::Blob;
using reference::Tensor;

constexpr uint64_t kSeed = 7;
// An operator may hold lists as long as an axis, and runs only if it is quick.
constexpr int64_t kMaxPreparedAxis = 1 << 16;
constexpr int64_t kMaxRunElements = 1 << 13;
constexpr int64_t kMaxWorkspace = 1 << 26;

// A heap block of exactly the size of its contents. Empty contents have an address, like operands
// without elements; an absent block has none.
class ExactBlock {
 public:
  ExactBlock() = default;
  explicit ExactBlock(int64_t bytes) : ExactBlock(Blob(static_cast<size_t>(bytes), 0xFF)) {}
  explicit ExactBlock(const Blob& contents)
      : size_(contents.size()), memory_(std::make_unique<unsigned char[]>(size_)) {
    std::copy(contents.begin(), contents.end(), memory_.get());
  }
  void* at() const { return memory_.get(); }
  Blob Read() const { return Blob(memory_.get(), memory_.get() + size_); }

 private:
  size_t size_ = 0;
  std::unique_ptr<unsigned char[]> memory_;
};
using Blocks = std::vector<ExactBlock>;

std::vector<const void*> Addresses(const Blocks& blocks) {
  std::vector<const void*> addresses;
  for (const ExactBlock& block : blocks) addresses.push_back(block.at());
  return addresses;
}

ExactBlock OptionalBlock(bool exists, const Blob& contents) {
  return exists ? ExactBlock(contents) : ExactBlock();
}
ExactBlock OptionalBlock(bool exists, int64_t bytes) {
  return exists ? ExactBlock(bytes) : ExactBlock();
}

// Returns the contents of operands that backward may read.
Blocks ReadByBackward(const std::vector<Operand>& operands, const std::vector<Blob>& contents) {
  Blocks blocks;
  for (size_t i = 0; i < operands.size(); ++i) {
    blocks.push_back(OptionalBlock(operands[i].is_read_by_backward, contents[i]));
  }
  return blocks;
}

struct KernelRun {
  OpSpec spec;
  std::vector<Tensor> inputs;
  std::vector<Tensor> arriving;
};

reference::ForwardResult RunForward(PreparedOp& op, const KernelRun& run) {
  Blocks inputs, outputs;
  for (size_t i = 0; i < run.inputs.size(); ++i) {
    inputs.push_back(OptionalBlock(run.inputs[i].is_present, ToBytes(run.inputs[i])));
  }
  std::vector<void*> to;
  for (const Operand& output : run.spec.outputs) {
    outputs.push_back(OptionalBlock(output.is_present, output.is_present ? output.bytes() : 0));
    to.push_back(outputs.back().at());
  }
  const auto statistic = OptionalBlock(run.spec.statistic_bytes > 0, run.spec.statistic_bytes);
  const auto workspace = OptionalBlock(op.workspace().forward > 0, op.workspace().forward);
  op.Forward({Addresses(inputs), to, statistic.at(), workspace.at(), kSeed});
  reference::ForwardResult result;
  for (const ExactBlock& output : outputs) result.outputs.push_back(output.Read());
  result.statistic = statistic.Read();
  return result;
}

reference::BackwardResult RunBackward(PreparedOp& op, const KernelRun& run,
                                      const reference::ForwardResult& forward) {
  std::vector<Blob> contents;
  for (const Tensor& input : run.inputs) contents.push_back(ToBytes(input));
  const Blocks inputs = ReadByBackward(run.spec.inputs, contents);
  const Blocks outputs = ReadByBackward(run.spec.outputs, forward.outputs);
  Blocks arriving;
  for (size_t i = 0; i < run.arriving.size(); ++i) {
    arriving.push_back(OptionalBlock(run.arriving[i].is_present, ToBytes(run.arriving[i])));
  }
  const auto statistic = OptionalBlock(!forward.statistic.empty(), forward.statistic);
  const auto workspace = OptionalBlock(op.workspace().backward > 0, op.workspace().backward);
  const auto from_inputs = Addresses(inputs);
  const auto from_outputs = Addresses(outputs);
  const auto from_arriving = Addresses(arriving);
  const BackwardCall call{from_inputs,    from_outputs,   from_arriving,
                          statistic.at(), workspace.at(), kSeed};
  reference::BackwardResult result;
  for (size_t i = 0; i < run.spec.inputs.size(); ++i) {
    const Operand& input = run.spec.inputs[i];
    const auto gradient = OptionalBlock(input.has_gradient, input.has_gradient ? input.bytes() : 0);
    if (input.has_gradient) op.BackwardInput(call, i, gradient.at());
    result.gradients.push_back(gradient.Read());
  }
  return result;
}

// Large integers wrap in a kernel, but not in a reference, which computes in doubles.
constexpr double kMaxInteger = 1 << 30;

bool DiffersMuch(ElementType type, double actual, double expected) {
  if (!std::isfinite(actual) || !std::isfinite(expected)) return false;
  if (!IsFloat(type)) {
    if (std::abs(expected) > kMaxInteger) return false;
    expected =
        std::trunc(expected);  // The reference of a power with a negative exponent has a fraction.
  }
  return std::abs(actual - expected) > 0.05 * std::max(1.0, std::abs(expected));
}

// True if integers that serve as indices are in range for every axis of the first operand, because
// any axis may be the indexed one.
bool AreIndicesInRange(const KernelRun& run) {
  if (run.inputs.empty() || RuleOf(run.spec.type).is_elementwise()) return true;
  const std::vector<int64_t>& dims = run.spec.inputs[0].dims;
  const int64_t size = dims.empty() ? 1 : *std::min_element(dims.begin(), dims.end());
  const auto is_index = [size](double value) {
    return 0 <= value && value < static_cast<double>(size);
  };
  for (size_t i = 1; i < run.inputs.size(); ++i) {
    const Operand& input = run.spec.inputs[i];
    if (!input.is_present || IsFloat(input.type) || input.known) continue;
    const std::vector<double>& values = run.inputs[i].values;
    if (!std::all_of(values.begin(), values.end(), is_index)) return false;
  }
  return true;
}

// References are simple: they write every output, divide by sizes, and don't check indices.
bool CanCompare(const KernelRun& run) {
  const auto is_filled = [](const Operand& operand) { return operand.elements() > 0; };
  for (const Operand& output : run.spec.outputs) {
    if (!output.is_present || !is_filled(output)) return false;
  }
  for (const Operand& input : run.spec.inputs) {
    if (input.is_present && !is_filled(input)) return false;
  }
  return !RuleOf(run.spec.type).is_random() && AreIndicesInRange(run);
}

// Compares with a wide tolerance, because contents are arbitrary. A kernel that reads the wrong
// elements is far off.
void CompareWithReference(const KernelRun& run, const reference::ForwardResult& forward) {
  const reference::Function function = reference::FindFunction(run.spec.type);
  if (function == nullptr || !CanCompare(run)) return;
  std::vector<Tensor> expected;
  for (const Operand& output : run.spec.outputs) expected.push_back(reference::EmptyTensor(output));
  function(run.spec, run.inputs, expected);
  for (size_t i = 0; i < expected.size(); ++i) {
    const Tensor actual = reference::FromBytes(forward.outputs[i], run.spec.outputs[i]);
    for (int64_t k = 0; k < expected[i].size(); ++k) {
      CKPLAN_CHECK(!DiffersMuch(actual.type, actual[k], expected[i][k]),
                   fmt::format("output {}, element {} is {} instead of {}", i, k, actual[k],
                               expected[i][k]));
    }
  }
}

// Runs once between guards, which also detect writes by code without sanitizer instrumentation,
// such as libraries, and once in exact blocks. Both runs must give the same bits.
void RunOperator(Backend& backend, PreparedOp& op, const KernelRun& run, bool has_backward) {
  const auto guarded = reference::RunForward(backend, op, run.spec, run.inputs, kSeed);
  for (const std::string& fault : guarded.faults) CKPLAN_CHECK(fault.empty(), fault);
  const auto exact = RunForward(op, run);
  CKPLAN_CHECK(exact.outputs == guarded.outputs && exact.statistic == guarded.statistic,
               "forward results don't depend on addresses");
  CompareWithReference(run, exact);
  if (!has_backward) return;
  const auto guarded_back =
      reference::RunBackward(backend, op, run.spec, run.inputs, guarded, run.arriving, kSeed);
  for (const std::string& fault : guarded_back.faults) CKPLAN_CHECK(fault.empty(), fault);
  const auto exact_back = RunBackward(op, run, exact);
  CKPLAN_CHECK(exact_back.gradients == guarded_back.gradients,
               "backward results don't depend on addresses");
}

// Sets which gradients are requested and which arrive, as in a training step with this operator.
bool SetRoles(const reference::OpCase& op_case, OpSpec* spec) {
  std::vector<bool> needs_gradient, is_constant, arrives;
  for (size_t i = 0; i < op_case.contents.size(); ++i) {
    needs_gradient.push_back(op_case.contents[i].needs_gradient && spec->inputs[i].is_present &&
                             IsDifferentiable(*spec, i));
    is_constant.push_back(op_case.contents[i].is_constant);
  }
  bool any = std::find(needs_gradient.begin(), needs_gradient.end(), true) != needs_gradient.end();
  bool any_arrives = false;
  for (const Operand& output : spec->outputs) {
    arrives.push_back(any && output.is_present && IsFloat(output.type));
    any_arrives |= arrives.back();
  }
  if (!any_arrives) needs_gradient.assign(needs_gradient.size(), false);
  reference::SetGradientRoles(*spec, needs_gradient, is_constant, arrives);
  return any && any_arrives;
}

struct Extent {
  int64_t longest_axis = 0;
  int64_t elements = 0;
};

Extent ExtentOf(const OpSpec& spec) {
  Extent extent;
  for (const auto* operands : {&spec.inputs, &spec.outputs}) {
    for (const Operand& operand : *operands) {
      if (!operand.is_present) continue;
      for (const int64_t dim : operand.dims)
        extent.longest_axis = std::max(extent.longest_axis, dim);
      extent.elements = std::max(extent.elements, operand.elements());
    }
  }
  return extent;
}

}  // namespace

void FuzzKernels(FuzzInput input) {
  const std::optional<reference::OpCase> op_case = ReadKernelCase(TextOf(input));
  if (!op_case) return;
  KernelRun run{op_case->spec, {}, {}};
  if (!RuleOf(run.spec.type).is_known()) return;
  const Extent extent = ExtentOf(run.spec);
  if (!ValidateOp(run.spec).ok() || extent.longest_axis > kMaxPreparedAxis) return;
  const bool has_backward = SetRoles(*op_case, &run.spec) && HasGradient(run.spec.type);
  static const std::unique_ptr<Backend> backend = cpu::MakeCpuBackend(1);
  Result<std::unique_ptr<PreparedOp>> op = backend->Prepare(run.spec);
  if (!op.ok() || extent.elements > kMaxRunElements) return;
  if (std::max((*op)->workspace().forward, (*op)->workspace().backward) > kMaxWorkspace) return;
  run.inputs = FillInputs(*op_case, kSeed);
  Rng rng(kSeed);
  for (const Operand& output : run.spec.outputs) {
    run.arriving.push_back(output.has_gradient ? reference::RandomGradient(output, rng)
                                               : reference::Tensor());
  }
  RunOperator(*backend, **op, run, has_backward);
}

}  // namespace ckplan
