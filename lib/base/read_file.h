// Reading whole files.
#pragma once

#include <string>
#include <string_view>

#include "lib/base/result.h"

namespace ckplan {

inline constexpr std::string_view kStandardStream = "-";

// kIo: "cannot VERB "PATH": REASON", where `reason` is an errno.
Error IoError(std::string_view verb, const std::string& path, int reason);

inline constexpr size_t kMaxTextBytes = size_t{256} << 20;  // A plan of a million nodes.

// "-" is standard input. kIo names the file and the reason; a file that has more than
// kMaxTextBytes, or has no end, is one. A named pipe is read while somebody writes to it; if nobody
// comes to within a few seconds, that is an error too.
Result<std::string> ReadWholeFile(const std::string& path);

// Whether it is read once, from its beginning on: standard input, a pipe, a device. No model is
// read from there, since models are read in place.
bool IsStream(const std::string& path);

// Up to `count` bytes from the front of the file, or fewer; empty if it cannot be read or is not a
// regular file.
std::string PeekFile(const std::string& path, size_t count);

}  // namespace ckplan
