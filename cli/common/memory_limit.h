// Limits the memory that the program may use. Beyond the limit an allocation throws std::bad_alloc,
// so that the program ends with a message or continues with another algorithm. Without a limit, the
// system would kill the program.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/base/units.h"

namespace ckplan {

// A sanitizer reserves more address space than any limit allows.
#ifdef CKPLAN_SANITIZED
inline constexpr bool kCanLimitMemory = false;
#else
inline constexpr bool kCanLimitMemory = true;
#endif

// Returns the memory that a new program could use: what the system reports as available, or what
// the control group of this process has left, if that is less. Returns nothing if the system does
// not report it. `root` is the folder of the system's files.
std::optional<Bytes> FreeMemory(const std::string& root = "");

// Sets the limit to the size that --memory-limit gives, or to three quarters of the free memory.
// Limits that the process inherits (ulimit -v, ulimit -d) stay in force.
// kUsage: `given` is no size.
Result<Done> LimitMemory(const std::optional<std::string>& given);

// Returns the limit in force: the tightest of this program's own and the inherited ones. Returns
// nothing before LimitMemory if none is inherited.
std::optional<Bytes> MemoryLimit();

// Names the limit in force and what raises it, without allocating memory:
//   "the memory limit of 12.62 GiB"                   "--memory-limit"
//   "the limit on address space of 40000 KiB"         "ulimit -v"
//   "the limit on the data segment of 40000 KiB"      "ulimit -d"
// Both texts are empty if there is no limit.
struct MemoryLimitWords {
  std::string_view limit;
  std::string_view setting;
};
MemoryLimitWords DescribeMemoryLimit();

}  // namespace ckplan
