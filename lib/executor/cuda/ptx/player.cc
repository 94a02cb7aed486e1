#include "lib/executor/cuda/ptx/player.h"

#include <fmt/format.h>

#include <algorithm>

namespace ckplan::ptx {

namespace {

class BlockPlayer {
 public:
  explicit BlockPlayer(LaunchState& launch) : launch_(launch) {
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
      // In descending order, so that a kernel that wrongly relies on the work of a lower warp fails
      // its test.
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
  if (shape.threads > program.most_threads) {
    findings.Add(fmt::format("a block has {} threads, more than the {} of its launch bounds ({})",
                             shape.threads, program.most_threads, program.name));
  }
  BlockPlayer player(launch);
  for (int64_t block = 0; block < shape.blocks; ++block) player.Play(block);
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
