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
// kUsage: `given` is no size.
Result<Done> LimitMemory(const std::optional<std::string>& given);

// Returns the limit in force, or nothing before LimitMemory.
std::optional<Bytes> MemoryLimit();
// Returns the limit as text for people, or "" if there is none. Allocates no memory.
std::string_view MemoryLimitText();

}  // namespace ckplan
