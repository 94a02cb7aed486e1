// Reads whole files.
#pragma once

#include <string>
#include <string_view>

#include "lib/base/result.h"

namespace ckplan {

inline constexpr std::string_view kStandardStream = "-";

// kIo: "cannot VERB "PATH": REASON", where `reason` is an errno.
Error IoError(std::string_view verb, const std::string& path, int reason);

inline constexpr size_t kMaxTextBytes = size_t{256} << 20;  // Enough for a plan of a million nodes.

// Reads a whole file; "-" is standard input. kIo: the file cannot be read, has more than
// kMaxTextBytes, or has no end. A named pipe is read while it has a writer; if no writer opens it
// within a few seconds, that is kIo, too.
Result<std::string> ReadWholeFile(const std::string& path);

// Returns whether the input can be read only once, from its beginning: standard input, a pipe, a
// device. Models cannot come from there, since they are read in place.
bool IsStream(const std::string& path);

// Returns the first `count` bytes of the file, or fewer; an empty text if the file cannot be read
// or is not a regular file.
std::string PeekFile(const std::string& path, size_t count);

}  // namespace ckplan
