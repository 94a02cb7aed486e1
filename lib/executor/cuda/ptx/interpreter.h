// Plays a kernel: all its blocks, one after the other.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/executor/cuda/ptx/lanes.h"
#include "lib/executor/cuda/ptx/memory.h"
#include "lib/executor/cuda/ptx/program.h"

namespace ckplan::ptx {

// Plays the threads of one warp.
struct LaunchShape {
  int64_t blocks = 1;
  int64_t threads = 1;  // In a block.
};

// What all warps of a launch share.
struct LaunchState {
  const Program& program;
  LaunchShape shape;
  const std::vector<unsigned char>& parameters;
  GlobalMemory& global;
  SharedMemory& shared;
  Findings& findings;
  TrafficCounter* traffic = nullptr;  // Null if it is not counted.
  int64_t instructions = 0;           // Each thread counts, not each warp.
  int64_t warp_instructions = 0;
  uint32_t clock = 1;  // Barriers of blocks, and starts of blocks, so far.
};

// The threads of a warp run together as long as they are at the same instruction. Where they part,
// those at the lowest address run first, so that they meet again as soon as they can. Any other
// order would be right as well; accesses of shared memory that depend on it are found by
// SharedMemory.
class Warp {
 public:
  // The warp's first thread is thread `first` of its block.
  Warp(LaunchState& launch, uint32_t first, uint32_t threads);

  void StartBlock(int64_t block);
  // Runs until each thread has ended or waits for the block.
  void Run();

  bool has_ended() const { return alive_ == 0; }
  // Whether all threads wait for the block at the same barrier, which is the next instruction's.
  bool WaitsAt(int32_t barrier) const;
  // Returns the barrier of the first thread that waits for the block, or -1.
  int32_t Barrier() const;
  void PassBarrier() { waits_for_block_ = 0; }

 private:
  void Fill(Register at, uint64_t value);
  // Runs the threads of a group until they part, wait, end or come to `stop`, where others are.
  void RunGroup(LaneMask group, int32_t pc, int32_t stop);
  // Handles an instruction that decides where the threads go on. Returns whether the group stays
  // together, in which case `pc` is where.
  bool Go(const Instruction& instruction, LaneMask group, LaneMask active, int32_t& pc);
  void PassWarpBarrier();
  LaneMask ActiveOf(const Instruction& instruction, LaneMask group) const;
  void SetPc(LaneMask lanes, int32_t pc);

  // ---- Memory
  struct AddressesOfLanes {
    std::array<uint64_t, kLanes> at;  // Only of the lanes that take part.
    uint64_t lowest = ~uint64_t{0}, highest = 0;
    uint64_t bits = 0;  // The bits that are set in any of them.
  };
  using MemoryOfLanes = std::array<unsigned char*, kLanes>;

  void Access(const Instruction& instruction, LaneMask lanes);
  AddressesOfLanes AddressesOf(const Instruction& instruction, LaneMask lanes) const;
  void CheckAlignment(const Instruction& instruction, LaneMask lanes,
                      const AddressesOfLanes& addresses, int64_t bytes);
  // Sets where the host has the memory of each lane. Returns the lanes that have some; the others
  // are reported.
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
  LaneMask all_;  // The lanes that are threads.
  std::vector<uint64_t> values_;
  LaneRegisters registers_;
  LaneMask carries_ = 0;
  LaneMask alive_ = 0, waits_for_block_ = 0, waits_for_warp_ = 0;
  std::array<int32_t, kLanes> pc_{};
  std::array<std::vector<int32_t>, kLanes> returns_;  // Where calls return to.
  std::vector<unsigned char> local_, call_;
  uint32_t clock_ = 1;  // Barriers of the warp so far.
};

struct LaunchCounts {
  int64_t instructions = 0;       // Each thread counts.
  int64_t warp_instructions = 0;  // Each warp counts, however many of its threads take part.
  Traffic reads, writes;          // In global memory; zero if they are not counted.
};

// Runs the kernel with these parameters, laid out as Program::parameters says. Faults of the kernel
// are added to `findings`: accesses outside of allocations or without alignment, accesses of shared
// memory without a barrier between them or before it is written, and barriers that not all threads
// reach. Counting traffic takes time, so it is done only if `counts_traffic` says so.
LaunchCounts Play(const Program& program, const std::vector<unsigned char>& parameters,
                  const LaunchShape& shape, GlobalMemory& global, Findings& findings,
                  bool counts_traffic);

// A launch of a kernel, as a line of JSON.

// Returns the kernel, its grid and what was counted, as an object without a line break.
std::string LaunchLine(const std::string& kernel, const LaunchShape& shape,
                       const LaunchCounts& counts);

}  // namespace ckplan::ptx
