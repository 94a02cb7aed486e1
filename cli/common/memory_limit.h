// How much memory the program may use. Beyond it an allocation throws std::bad_alloc, so that the
// program ends with a message, or goes on with another algorithm; the system would kill it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/base/units.h"

namespace ckplan {

// A sanitizer reserves more address space than any limit leaves.
#ifdef CKPLAN_SANITIZED
inline constexpr bool kCanLimitMemory = false;
#else
inline constexpr bool kCanLimitMemory = true;
#endif

// What a new program could use: what the system says is available, or what is left to the control
// group that this process is in, if that is less. Nothing if the system does not say. `root` is
// where the system's files begin.
std::optional<Bytes> FreeMemory(const std::string& root = "");

// Sets the limit to the size that --memory-limit gives, or to three quarters of what is free.
// kUsage: `given` is no size.
Result<Done> LimitMemory(const std::optional<std::string>& given);

// The limit in force; nothing before LimitMemory.
std::optional<Bytes> MemoryLimit();
// The same for people, and empty if there is none. Takes no memory.
std::string_view MemoryLimitText();

}  // namespace ckplan
