#include "lib/executor/cuda/testing/host/emulated_blocks.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace ckplan::cuda {
namespace {

TEST_CASE("emulated blocks: every thread of every block runs once, with barriers or without") {
  for (const bool has_barriers : {false, true}) {
    std::vector<int> runs(5 * 70);
    PlayBlocks(5, 70, has_barriers, [&] {
      if (gridDim.x == 5) ++runs[blockIdx.x * 70 + threadIdx.x];
    });
    CHECK(runs == std::vector<int>(runs.size(), 1));
  }
}

TEST_CASE("emulated blocks: each block has its own shared memory, complete after a barrier") {
  std::vector<unsigned> sums(7);
  PlayBlocks(7, 100, true, [&] {
    __shared__ unsigned values[100];
    for (unsigned round = 0; round < 3; ++round) {
      values[threadIdx.x] = blockIdx.x + threadIdx.x * round;
      __syncthreads();
      if (threadIdx.x == round) {
        sums[blockIdx.x] = 0;
        for (const unsigned value : values) sums[blockIdx.x] += value;
      }
      __syncthreads();
    }
  });
  for (unsigned block = 0; block < 7; ++block) CHECK(sums[block] == block * 100 + 2 * 4950);
}

TEST_CASE("emulated blocks: a warp waits only for its own threads") {
  std::vector<unsigned> firsts(70);
  PlayBlocks(1, 70, true, [&] {
    __shared__ unsigned values[70];
    const unsigned warp = threadIdx.x / 32;
    for (unsigned round = 0; round <= warp;
         ++round) {  // Each warp runs a different number of rounds.
      values[threadIdx.x] = threadIdx.x + round;
      __syncwarp();
      firsts[threadIdx.x] = values[warp * 32];
      __syncwarp();
    }
  });
  for (unsigned i = 0; i < 70; ++i) CHECK(firsts[i] == i / 32 * 33);
}

// A tree of sums over the threads of a block, twice, as in Team::Reduce and ReduceKernel. Returns
// whether all blocks have the right sums.
bool SumsAreRight(bool waits_before, bool waits_after) {
  constexpr unsigned kThreads = 64, kBlocks = 8;
  std::vector<int> wrong(kBlocks);
  PlayBlocks(kBlocks, kThreads, true, [&] {
    __shared__ unsigned partial[kThreads];
    for (unsigned round = 1; round <= 2; ++round) {
      partial[threadIdx.x] = round;
      if (waits_before) __syncthreads();
      for (unsigned half = kThreads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
      }
      if (partial[0] != round * kThreads) wrong[blockIdx.x] = 1;
      if (waits_after) __syncthreads();
    }
  });
  return std::count(wrong.begin(), wrong.end(), 1) == 0;
}

TEST_CASE("emulated blocks: sums are wrong without the barrier before a tree, or the one after") {
  CHECK(SumsAreRight(true, true));
  CHECK_FALSE(SumsAreRight(false, true));
  CHECK_FALSE(SumsAreRight(true, false));
}

// Returns the exit status of a child process that runs `kernel` with its output suppressed.
int StatusOfChild(const std::function<void()>& kernel) {
  const pid_t child = fork();
  if (child == 0) {
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    PlayBlocks(1, 64, true, kernel);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("emulated blocks: a barrier that not all threads reach ends the program") {
  CHECK(StatusOfChild([] { __syncthreads(); }) == 0);
  CHECK(StatusOfChild([] {
          if (threadIdx.x != 5) __syncthreads();
        }) == 70);
  CHECK(StatusOfChild([] {
          if (threadIdx.x % 2 == 0) __syncwarp();
        }) == 70);
}

#ifdef CKPLAN_SANITIZES_THREADS

unsigned raced[65];

void ReadNext(bool waits) {
  raced[threadIdx.x] = threadIdx.x;
  if (waits) __syncthreads();
  const unsigned next = raced[threadIdx.x + 1];
  if (waits) __syncthreads();
  raced[threadIdx.x] = next;
}

// Each of these tests runs in its own process.
TEST_CASE("race: none" * doctest::skip()) {
  PlayBlocks(1, 64, true, [] { ReadNext(true); });
}
TEST_CASE("race: within a block" * doctest::skip()) {
  PlayBlocks(1, 64, true, [] { ReadNext(false); });
}
TEST_CASE("race: between blocks" * doctest::skip()) {
  PlayBlocks(2, 64, true, [] { ReadNext(true); });
}

TEST_CASE("emulated blocks: the thread sanitizer finds races within a block, and between blocks") {
  const auto status = [](const std::string& name) {
    const std::string self = std::filesystem::read_symlink("/proc/self/exe");
    const int result =
        std::system((self + " --no-skip -tc='" + name + "' >/dev/null 2>&1").c_str());
    return WIFEXITED(result) ? WEXITSTATUS(result) : -1;
  };
  constexpr int kRace = 66;  // The exit code of the sanitizer.
  CHECK(status("race: none") == 0);
  CHECK(status("race: within a block") == kRace);
  CHECK(status("race: between blocks") == kRace);
}

#endif

}  // namespace
}  // namespace ckplan::cuda
