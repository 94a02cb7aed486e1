// Interprets a kernel: all its blocks, one after the other.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/executor/cuda/testing/ptx/lanes.h"
#include "lib/executor/cuda/testing/ptx/memory.h"
#include "lib/executor/cuda/testing/ptx/program.h"

namespace ckplan::ptx {

// Plays the threads of one warp.
struct LaunchShape {
  int64_t blocks = 1;
  int64_t threads = 1;  // Per block.
};

// State shared by all warps of a launch.
struct LaunchState {
  const Program& program;
  LaunchShape shape;
  const std::vector<unsigned char>& parameters;
  GlobalMemory& global;
  SharedMemory& shared;
  Findings& findings;
  TrafficCounter* traffic = nullptr;  // Null to skip counting.
  int64_t instructions = 0;           // Counted per thread, not per warp.
  int64_t warp_instructions = 0;
  uint32_t clock = 1;  // Block barriers and block starts so far.
};

// The threads of a warp run together as long as they are at the same instruction. When they
// diverge, those at the lowest address run first, so that they reconverge as soon as possible. Any
// other order would also be correct; SharedMemory detects shared memory accesses that depend on it.
class Warp {
 public:
  // The warp's first thread is thread `first` of its block.
  Warp(LaunchState& launch, uint32_t first, uint32_t threads);

  void StartBlock(int64_t block);
  // Runs until each thread has ended or waits for the block.
  void Run();

  bool has_ended() const { return alive_ == 0; }
  // True if all threads wait for the block at the same barrier, the next instruction's.
  bool WaitsAt(int32_t barrier) const;
  // Returns the barrier of the first thread that waits for the block, or -1.
  int32_t Barrier() const;
  void PassBarrier() { waits_for_block_ = 0; }

 private:
  void Fill(Register at, uint64_t value);
  // Runs a group's threads until they diverge, wait, end or reach the threads at `stop`.
  void RunGroup(LaneMask group, int32_t pc, int32_t stop);
  // Handles a control flow instruction. Returns whether the group stays together, at `pc`.
  bool HandleControlFlow(const Instruction& instruction, LaneMask group, LaneMask active,
                         int32_t& pc);
  void PassWarpBarrier();
  LaneMask ActiveOf(const Instruction& instruction, LaneMask group) const;
  void SetPc(LaneMask lanes, int32_t pc);

  // ---- Memory
  struct AddressesOfLanes {
    std::array<uint64_t, kLanes> at;  // Only for participating lanes.
    uint64_t lowest = ~uint64_t{0}, highest = 0;
    uint64_t bits = 0;  // All lanes' bits, combined with or.
  };
  using MemoryOfLanes = std::array<unsigned char*, kLanes>;

  void Access(const Instruction& instruction, LaneMask lanes);
  AddressesOfLanes AddressesOf(const Instruction& instruction, LaneMask lanes) const;
  void CheckAlignment(const Instruction& instruction, LaneMask lanes,
                      const AddressesOfLanes& addresses, int64_t bytes);
  // Finds each lane's memory on the host. Returns the lanes whose memory exists, and reports the
  // others.
  LaneMask Find(const Instruction& instruction, LaneMask lanes, const AddressesOfLanes& addresses,
                int64_t bytes, MemoryOfLanes& memory);
  void Count(const Instruction& instruction, LaneMask lanes, const AddressesOfLanes& addresses,
             int64_t bytes);
  void Watch(const Instruction& instruction, LaneMask lanes, const AddressesOfLanes& addresses,
             int64_t bytes);
  void CopyParameters(const Instruction& instruction, LaneMask lanes);
  void Report(const Instruction& instruction, const char* what);

  unsigned char* LaneBytes(std::vector<unsigned char>& bytes, int64_t each, int lane) {
    return bytes.data() + each * lane;
  }

  LaunchState& launch_;
  uint32_t first_;
  LaneMask all_;  // The lanes that have a thread.
  std::vector<uint64_t> values_;
  LaneRegisters registers_;
  LaneMask carries_ = 0;
  LaneMask alive_ = 0, waits_for_block_ = 0, waits_for_warp_ = 0;
  std::array<int32_t, kLanes> pc_{};
  std::array<std::vector<int32_t>, kLanes> returns_;  // Return addresses.
  std::vector<unsigned char> local_, call_;
  uint32_t clock_ = 1;  // Warp barriers so far.
};

struct LaunchCounts {
  int64_t instructions = 0;       // Counted per thread.
  int64_t warp_instructions = 0;  // Counted per warp, however many of its threads participate.
  Traffic reads, writes;          // In global memory; zero unless counted.
};

// Runs the kernel with these parameters, laid out as in Program::parameters. Adds the kernel's
// faults to `findings`: accesses outside allocations, misaligned accesses, shared memory accesses
// without a barrier between them or before a write, and barriers that not all threads reach.
// `counts_traffic` also counts traffic, which takes time.
LaunchCounts Play(const Program& program, const std::vector<unsigned char>& parameters,
                  const LaunchShape& shape, GlobalMemory& global, Findings& findings,
                  bool counts_traffic);

// A kernel launch as a line of JSON.

// Formats the kernel, its grid and the counts as an object without line breaks.
std::string LaunchLine(const std::string& kernel, const LaunchShape& shape,
                       const LaunchCounts& counts);

}  // namespace ckplan::ptx
