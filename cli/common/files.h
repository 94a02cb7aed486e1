// Writing whole files. Nobody ever sees half a file: each is written beside its place
// under another name and renamed once all of them are complete.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/read_file.h"
#include "lib/base/result.h"

namespace ckplan {

// Checks, before long work starts, that a file can be written at `path`; kIo if not. "-" can always
// be written.
Result<Done> CheckWritable(const std::string& path);

struct OutputFile {
  std::string path;
  std::string_view text;
};
// Writes all files or none, unless renaming one fails. A symbolic link keeps its target, which is
// replaced; devices and pipes are written to directly.
Result<Done> WriteFiles(const std::vector<OutputFile>& files);

}  // namespace ckplan
