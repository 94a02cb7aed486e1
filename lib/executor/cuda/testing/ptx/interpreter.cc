#include "lib/executor/cuda/testing/ptx/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "lib/executor/cuda/testing/ptx/compute.h"
#include "lib/executor/cuda/testing/ptx/lanes.h"

namespace ckplan::ptx {

namespace {

constexpr unsigned char kLocalPattern = 0xCC;  // Makes reads of unwritten memory stand out.
constexpr int32_t kNoStop = std::numeric_limits<int32_t>::max();

LaneMask FirstLanes(uint32_t count) {
  return count >= kLanes ? kAllLanes : (LaneMask{1} << count) - 1;
}

}  // namespace

Warp::Warp(LaunchState& launch, uint32_t first, uint32_t threads)
    : launch_(launch),
      first_(first),
      all_(FirstLanes(threads)),
      values_(static_cast<size_t>(launch.program.registers) * kLanes),
      registers_(values_.data()),
      local_(static_cast<size_t>(launch.program.local_bytes) * kLanes),
      call_(static_cast<size_t>(launch.program.call_bytes) * kLanes) {
  for (const Constant& constant : launch.program.constants) Fill(constant.at, constant.value);
  Fill(launch.program.threads, static_cast<uint64_t>(launch.shape.threads));
  Fill(launch.program.blocks, static_cast<uint64_t>(launch.shape.blocks));
  if (launch.program.thread != kNoRegister) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      registers_.Row(launch.program.thread)[lane] = first + lane;
    }
  }
}

void Warp::Fill(Register at, uint64_t value) {
  if (at != kNoRegister) std::fill_n(registers_.Row(at), kLanes, value);
}

void Warp::StartBlock(int64_t block) {
  Fill(launch_.program.block, static_cast<uint64_t>(block));
  std::fill(local_.begin(), local_.end(), kLocalPattern);
  alive_ = all_;
  waits_for_block_ = waits_for_warp_ = 0;
  pc_.fill(0);
}

// ---- Control ------------------------------------------------------------------------------------

void Warp::Run() {
  for (;;) {
    const LaneMask ready = alive_ & ~waits_for_block_ & ~waits_for_warp_;
    if (ready == 0) {
      if (waits_for_warp_ == 0) return;
      PassWarpBarrier();
      continue;
    }
    int32_t pc = kNoStop;
    ForLanes(ready, [&](int lane) { pc = std::min(pc, pc_[static_cast<size_t>(lane)]); });
    LaneMask group = 0;
    int32_t stop = kNoStop;
    ForLanes(ready, [&](int lane) {
      const int32_t own = pc_[static_cast<size_t>(lane)];
      if (own == pc) {
        group |= LaneMask{1} << lane;
      } else {
        stop = std::min(stop, own);
      }
    });
    RunGroup(group, pc, stop);
  }
}

void Warp::SetPc(LaneMask lanes, int32_t pc) {
  ForLanes(lanes, [&](int lane) { pc_[static_cast<size_t>(lane)] = pc; });
}

LaneMask Warp::ActiveOf(const Instruction& instruction, LaneMask group) const {
  if (instruction.guard == kNoRegister) return group;
  const uint64_t* const guard = registers_.Row(instruction.guard);
  LaneMask active = 0;
  ForLanes(group, [&](int lane) {
    const bool is_set = (guard[lane] & 1) != 0;
    if (is_set != instruction.guard_is_negated) active |= LaneMask{1} << lane;
  });
  return active;
}

// Runs the threads until they diverge, wait, end or reach the threads at `stop`.
void Warp::RunGroup(LaneMask group, int32_t pc, int32_t stop) {
  const std::vector<Instruction>& code = launch_.program.code;
  while (pc < stop) {
    const Instruction& instruction = code[static_cast<size_t>(pc)];
    const LaneMask active = ActiveOf(instruction, group);
    launch_.instructions += __builtin_popcount(active);
    ++launch_.warp_instructions;
    switch (instruction.opcode) {
      case Opcode::kBranch:
      case Opcode::kCall:
      case Opcode::kReturn:
      case Opcode::kBarrier:
      case Opcode::kWarpBarrier:
        if (!HandleControlFlow(instruction, group, active, pc)) return;
        continue;
      case Opcode::kLoad:
      case Opcode::kStore:
        Access(instruction, active);
        break;
      case Opcode::kCopyParameters:
        CopyParameters(instruction, active);
        break;
      default:
        Compute(instruction, registers_, active, carries_);
        break;
    }
    ++pc;
  }
  SetPc(group, pc);
}

bool Warp::HandleControlFlow(const Instruction& instruction, LaneMask group, LaneMask active,
                             int32_t& pc) {
  const int32_t next = pc + 1;
  if (active == 0) {
    pc = next;
    return true;
  }
  switch (instruction.opcode) {
    case Opcode::kBranch:
      if (active == group) {
        pc = instruction.target;
        return true;
      }
      SetPc(group, next);
      SetPc(active, instruction.target);
      return false;
    case Opcode::kCall:
      ForLanes(active, [&](int lane) { returns_[static_cast<size_t>(lane)].push_back(next); });
      pc = instruction.target;
      return true;
    case Opcode::kReturn:
      SetPc(group, next);
      ForLanes(active, [&](int lane) {
        std::vector<int32_t>& returns = returns_[static_cast<size_t>(lane)];
        if (returns.empty()) {
          alive_ &= ~(LaneMask{1} << lane);
        } else {
          pc_[static_cast<size_t>(lane)] = returns.back();
          returns.pop_back();
        }
      });
      return false;
    case Opcode::kBarrier:
      SetPc(group, next);
      waits_for_block_ |= active;
      return false;
    default:
      SetPc(group, next);
      waits_for_warp_ |= active;
      return false;
  }
}

// All threads of the warp must wait at the same barrier.
void Warp::PassWarpBarrier() {
  const int32_t next = pc_[static_cast<size_t>(__builtin_ctz(waits_for_warp_))];
  bool is_common = waits_for_warp_ == all_;
  ForLanes(waits_for_warp_, [&](int lane) { is_common &= pc_[static_cast<size_t>(lane)] == next; });
  if (!is_common) {
    Report(launch_.program.code[static_cast<size_t>(next - 1)],
           "a barrier of the warp is not reached by all of its threads");
  }
  waits_for_warp_ = 0;
  ++clock_;
}

int32_t Warp::Barrier() const {
  if (waits_for_block_ == 0) return -1;
  return pc_[static_cast<size_t>(__builtin_ctz(waits_for_block_))] - 1;
}

bool Warp::WaitsAt(int32_t barrier) const {
  bool is_common = waits_for_block_ == all_;
  ForLanes(waits_for_block_,
           [&](int lane) { is_common &= pc_[static_cast<size_t>(lane)] == barrier + 1; });
  return is_common;
}

// ---- Memory -------------------------------------------------------------------------------------

void Warp::Report(const Instruction& instruction, const char* what) {
  launch_.findings.Add(fmt::format("{}: {} ({})", what, instruction.text, launch_.program.name));
}

void Warp::Access(const Instruction& instruction, LaneMask lanes) {
  if (lanes == 0) return;
  const auto bytes = SizeOf(instruction.type) * instruction.vector;
  const AddressesOfLanes addresses = AddressesOf(instruction, lanes);
  CheckAlignment(instruction, lanes, addresses, bytes);
  if (launch_.traffic != nullptr && instruction.space == Space::kGlobal) {
    Count(instruction, lanes, addresses, bytes);
  }
  MemoryOfLanes memory;
  const LaneMask inside = Find(instruction, lanes, addresses, bytes, memory);
  if (instruction.space == Space::kShared) Watch(instruction, inside, addresses, bytes);
  const bool is_load = instruction.opcode == Opcode::kLoad;
  WithInteger(instruction.type, [&](auto zero) {
    using T = decltype(zero);
    for (size_t k = 0; k < instruction.vector; ++k) {
      uint64_t* const row = registers_.Row(instruction.vectors[k]);
      if (is_load) {
        ForLanes(lanes & ~inside, [&](int lane) { row[lane] = 0; });
        ForLanes(inside, [&](int lane) {
          T value;
          std::memcpy(&value, memory[static_cast<size_t>(lane)] + k * sizeof(T), sizeof(T));
          row[lane] = ExtendedBits(value);
        });
      } else {
        ForLanes(inside, [&](int lane) {
          std::memcpy(memory[static_cast<size_t>(lane)] + k * sizeof(T), row + lane, sizeof(T));
        });
      }
    }
  });
}

Warp::AddressesOfLanes Warp::AddressesOf(const Instruction& instruction, LaneMask lanes) const {
  AddressesOfLanes addresses;
  const uint64_t* const row = registers_.Row(instruction.a);
  const auto offset = static_cast<uint64_t>(instruction.offset);
  ForLanes(lanes, [&](int lane) {
    const uint64_t address = row[lane] + offset;
    addresses.at[static_cast<size_t>(lane)] = address;
    addresses.bits |= address;
    addresses.lowest = std::min(addresses.lowest, address);
    addresses.highest = std::max(addresses.highest, address);
  });
  return addresses;
}

void Warp::CheckAlignment(const Instruction& instruction, LaneMask lanes,
                          const AddressesOfLanes& addresses, int64_t bytes) {
  const auto rest = static_cast<uint64_t>(bytes - 1);  // `bytes` is a power of two.
  if ((addresses.bits & rest) == 0) return;
  ForLanes(lanes, [&](int lane) {
    if ((addresses.at[static_cast<size_t>(lane)] & rest) != 0) {
      Report(instruction, "a misaligned access");
    }
  });
}

LaneMask Warp::Find(const Instruction& instruction, LaneMask lanes,
                    const AddressesOfLanes& addresses, int64_t bytes, MemoryOfLanes& memory) {
  // `contains` checks whether an address is valid, and `at` maps it to host memory.
  const auto find = [&](const auto& contains, const auto& at) {
    LaneMask inside = lanes;
    const auto span = static_cast<int64_t>(addresses.highest - addresses.lowest) + bytes;
    if (span < 0 || !contains(addresses.lowest, span)) {
      ForLanes(lanes, [&](int lane) {
        if (contains(addresses.at[static_cast<size_t>(lane)], bytes)) return;
        inside &= ~(LaneMask{1} << lane);
        Report(instruction, "an access outside of allocations");
      });
    }
    ForLanes(inside, [&](int lane) {
      memory[static_cast<size_t>(lane)] = at(addresses.at[static_cast<size_t>(lane)], lane);
    });
    return inside;
  };
  const auto find_own = [&](std::vector<unsigned char>& all, int64_t each) {
    const AddressRange range{0, static_cast<uint64_t>(each)};
    return find([&](uint64_t address, int64_t size) { return range.Contains(address, size); },
                [&](uint64_t address, int lane) { return LaneBytes(all, each, lane) + address; });
  };
  switch (instruction.space) {
    case Space::kGlobal:
      return find(
          [&](uint64_t address, int64_t size) { return launch_.global.Contains(address, size); },
          [](uint64_t address, int) { return reinterpret_cast<unsigned char*>(address); });
    case Space::kShared:
      return find(
          [&](uint64_t address, int64_t size) { return launch_.shared.Contains(address, size); },
          [&](uint64_t address, int) { return launch_.shared.at(address); });
    case Space::kLocal:
      return find_own(local_, launch_.program.local_bytes);
    case Space::kCall:
      return find_own(call_, launch_.program.call_bytes);
    case Space::kParameters:
      break;
  }
  const AddressRange range{0, launch_.parameters.size()};
  return find(
      [&](uint64_t address, int64_t size) {
        return instruction.opcode == Opcode::kLoad && range.Contains(address, size);
      },
      [&](uint64_t address, int) {
        return const_cast<unsigned char*>(launch_.parameters.data()) + address;
      });
}

void Warp::Count(const Instruction& instruction, LaneMask lanes, const AddressesOfLanes& addresses,
                 int64_t bytes) {
  WarpAccess access{instruction.opcode == Opcode::kLoad, bytes, {}, 0};
  ForLanes(lanes, [&](int lane) {
    access.addresses[access.threads++] = addresses.at[static_cast<size_t>(lane)];
  });
  launch_.traffic->Add(access);
}

void Warp::Watch(const Instruction& instruction, LaneMask lanes, const AddressesOfLanes& addresses,
                 int64_t bytes) {
  const bool is_load = instruction.opcode == Opcode::kLoad;
  ForLanes(lanes, [&](int lane) {
    const Clock now{first_ + static_cast<uint32_t>(lane), launch_.clock, clock_};
    const uint64_t address = addresses.at[static_cast<size_t>(lane)];
    switch (is_load ? launch_.shared.Read(address, bytes, now)
                    : launch_.shared.Write(address, bytes, now)) {
      case ckplan::ptx::Access::kSound:
        return;
      case ckplan::ptx::Access::kRace:
        return Report(instruction, "two threads access shared memory with no barrier between them");
      case ckplan::ptx::Access::kUnwritten:
        return Report(instruction, "shared memory is read before it is written");
    }
  });
}

void Warp::CopyParameters(const Instruction& instruction, LaneMask lanes) {
  for (const ParameterCopy& copy :
       launch_.program.copies[static_cast<size_t>(instruction.target)]) {
    ForLanes(lanes, [&](int lane) {
      unsigned char* const memory = LaneBytes(call_, launch_.program.call_bytes, lane);
      std::memmove(memory + copy.to, memory + copy.from, static_cast<size_t>(copy.bytes));
    });
  }
}

namespace {

class BlockInterpreter {
 public:
  explicit BlockInterpreter(LaunchState& launch) : launch_(launch) {
    const int64_t threads = launch.shape.threads;
    warps_.reserve(static_cast<size_t>((threads + kLanes - 1) / kLanes));
    for (int64_t first = 0; first < threads; first += kLanes) {
      const int64_t count = std::min<int64_t>(kLanes, threads - first);
      warps_.emplace_back(launch, static_cast<uint32_t>(first), static_cast<uint32_t>(count));
    }
  }

  void Play(int64_t block) {
    ++launch_.clock;
    launch_.shared.StartBlock(launch_.clock);
    for (Warp& warp : warps_) warp.StartBlock(block);
    for (;;) {
      // In descending order, so that a kernel that wrongly relies on a lower warp fails its test.
      for (size_t i = warps_.size(); i-- > 0;) warps_[i].Run();
      if (std::all_of(warps_.begin(), warps_.end(), [](const Warp& w) { return w.has_ended(); })) {
        return;
      }
      PassBarrier();
    }
  }

 private:
  void PassBarrier() {
    const auto waiting = std::find_if(warps_.begin(), warps_.end(),
                                      [](const Warp& warp) { return warp.Barrier() >= 0; });
    const int32_t barrier = waiting->Barrier();
    const bool is_common = std::all_of(warps_.begin(), warps_.end(),
                                       [&](const Warp& warp) { return warp.WaitsAt(barrier); });
    if (!is_common) {
      launch_.findings.Add(fmt::format(
          "a barrier of the block is not reached by all of its threads: {} ({})",
          launch_.program.code[static_cast<size_t>(barrier)].text, launch_.program.name));
    }
    ++launch_.clock;
    for (Warp& warp : warps_) warp.PassBarrier();
  }

  LaunchState& launch_;
  std::vector<Warp> warps_;
};

}  // namespace

LaunchCounts Play(const Program& program, const std::vector<unsigned char>& parameters,
                  const LaunchShape& shape, GlobalMemory& global, Findings& findings,
                  bool counts_traffic) {
  SharedMemory shared(program.shared_bytes, program.shared_part_bytes);
  TrafficCounter traffic;
  LaunchState launch{
      program, shape, parameters, global, shared, findings, counts_traffic ? &traffic : nullptr};
  if (shape.threads > program.max_threads) {
    findings.Add(fmt::format("a block has {} threads, more than the {} of its launch bounds ({})",
                             shape.threads, program.max_threads, program.name));
  }
  BlockInterpreter interpreter(launch);
  for (int64_t block = 0; block < shape.blocks; ++block) interpreter.Play(block);
  return {launch.instructions, launch.warp_instructions, traffic.reads(), traffic.writes()};
}

namespace {

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') quoted += '\\';
    quoted += letter;
  }
  return quoted + '"';
}

std::string TrafficFields(const char* direction, const Traffic& traffic) {
  return fmt::format("\"{0}_bytes\": {1}, \"{0}_sectors\": {2}, \"{0}_distinct_sectors\": {3}",
                     direction, traffic.bytes, traffic.sectors, traffic.distinct_sectors);
}

}  // namespace

std::string LaunchLine(const std::string& kernel, const LaunchShape& shape,
                       const LaunchCounts& counts) {
  return fmt::format(
      "{{\"kernel\": {}, \"blocks\": {}, \"threads\": {}, \"instructions\": {}, "
      "\"warp_instructions\": {}, {}, {}}}",
      Quoted(kernel), shape.blocks, shape.threads, counts.instructions, counts.warp_instructions,
      TrafficFields("read", counts.reads), TrafficFields("written", counts.writes));
}

}  // namespace ckplan::ptx
