// Blocks of threads, played by the host: a kernel runs as on a GPU. Each thread of a block has a
// stack of its own, and leaves it at a barrier for that of another; two blocks run at the same
// time, in what is shared memory to each of them.
//
// The thread sanitizer takes them for threads, ordered by barriers and nothing else, and so finds
// the races that a GPU would have, within blocks and between them.
#pragma once

#include <cstdint>
#include <functional>

namespace ckplan::cuda {

// Runs `kernel` in each thread of each block. A barrier that some threads of a block, or of a warp,
// never come to ends the program. Without barriers, threads need no stacks, and are quicker.
void PlayBlocks(int64_t blocks, int64_t threads, bool has_barriers,
                const std::function<void()>& kernel);

void WaitForBlock();
void WaitForWarp();

// By the names that CUDA has for them.
struct PlayedIndex {
  unsigned x = 0;
};
inline thread_local PlayedIndex threadIdx, blockIdx, gridDim;

}  // namespace ckplan::cuda

#define __global__
#define __shared__ static thread_local
#define __launch_bounds__(threads)
#define __syncthreads() ::ckplan::cuda::WaitForBlock()
#define __syncwarp() ::ckplan::cuda::WaitForWarp()
