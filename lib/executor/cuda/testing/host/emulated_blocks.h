// Emulates blocks of threads on the host, so that kernels run as on a GPU. Each thread of a block
// has its own stack, and at a barrier switches to the stack of another thread. Two blocks run
// concurrently, each with its own shared memory. The threads of a block run in an order that
// differs from barrier to barrier and from block to block, and is the same in each run of a
// program, but for CKPLAN_THREAD_ORDER, a number in the environment.
//
// The thread sanitizer treats emulated threads as synchronised only by barriers, so it finds the
// races that a GPU would have, within and between blocks.
#pragma once

#include <cstdint>
#include <functional>

namespace ckplan::cuda {

// Runs `kernel` in each thread of each block. Ends the program if some threads of a block or a warp
// never reach a barrier. Without barriers, threads need no stacks and run faster.
void PlayBlocks(int64_t blocks, int64_t threads, bool has_barriers,
                const std::function<void()>& kernel);

// Adds a kernel launch to a stream of the emulated runtime (../emulated/emulated_runtime.h).
void EnqueueBlocks(void* stream, int64_t blocks, int64_t threads, bool has_barriers,
                   const std::function<void()>& kernel);

void WaitForBlock();
void WaitForWarp();

// Indices with CUDA's names.
struct EmulatedIndex {
  unsigned x = 0;
};
inline thread_local EmulatedIndex threadIdx, blockIdx, gridDim;

}  // namespace ckplan::cuda

#define __global__
#define __shared__ static thread_local
#define __launch_bounds__(threads)
#define __syncthreads() ::ckplan::cuda::WaitForBlock()
#define __syncwarp() ::ckplan::cuda::WaitForWarp()
