#include "lib/executor/cuda/ptx/launch_line.h"

#include <fmt/format.h>

namespace ckplan::ptx {

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
