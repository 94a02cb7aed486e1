// ckexec_emulated: ckexec with an emulated GPU, for tests. It opens the GPU, loads the libraries
// and runs the steps with the same code as ckexec. At the end it prints the calls to standard
// error, and fails if anything is left on the GPU.
//
// CKEXEC_EMULATED_FAULT names a fault to plant (EmulatedMachine::faults). CKEXEC_CUDA_PATH, if set,
// is searched for the emulated libraries as it is for NVIDIA's. It may also contain the real cuDNN,
// for `profile --device`, which runs nothing.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "cli/ckexec/commands.h"
#include "cli/common/exit_code.h"
#include "cli/common/guard.h"
#include "lib/executor/cuda/testing/emulated/emulated_runtime.h"

namespace ckplan {
namespace {

void StartGpu() {
  cuda::EmulatedMachine machine;
  if (const char* fault = std::getenv("CKEXEC_EMULATED_FAULT")) machine.faults.insert(fault);
  cuda::StartEmulatedRuntime(machine);
  setenv("CKEXEC_CUDA_PATH", CKPLAN_EMULATED_LIBRARIES, 0);
}

int EndGpu(int status) {
  std::map<std::string, int64_t> calls = cuda::CallsOfEmulatedRuntime();
  const cuda::EmulatedUse left = cuda::UseOfEmulatedRuntime();
  fmt::print(stderr,
             "emulated: {} kernels, {} products, {} convolutions, {} attentions, {} copies, {} "
             "allocations, {} of "
             "the pool\n",
             calls["kernel"], calls["cublasGemmStridedBatchedEx_64"], calls["convolution"],
             calls["attention"], calls["cudaMemcpyAsync"], calls["cudaMalloc"],
             calls["cudaMallocAsync"]);
  fmt::print(stderr,
             "left: {} allocations, {} streams, {} events, {} queued, {} objects of libraries\n",
             left.allocations, left.streams, left.events, left.queued, left.objects);
  const bool is_clean = left.allocations == 0 && left.streams == 0 && left.events == 0 &&
                        left.queued == 0 && left.objects == 0 && left.pinned == 0;
  return is_clean ? status : static_cast<int>(ExitCode::kInternal);
}

}  // namespace
}  // namespace ckplan

int main(int argc, char** argv) {
  ckplan::StartGpu();
  return ckplan::EndGpu(ckplan::RunProgram(ckplan::kGuardedExec, ckplan::RunExec, argc, argv));
}
