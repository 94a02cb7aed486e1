// Writing whole files. Nobody ever sees half a file: each is written beside its place
// under another name and renamed once all of them are complete.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lib/base/read_file.h"
#include "lib/base/result.h"

namespace ckplan {

// kIo if no file could be written there: checked before long work. "-" can always be written.
Result<Done> CheckWritable(const std::string& path);

struct OutputFile {
  std::string path;
  std::string_view text;
};
// All or none of them, except where a rename fails. A symbolic link keeps pointing where it points;
// devices and pipes are written to as they are.
Result<Done> WriteFiles(const std::vector<OutputFile>& files);

}  // namespace ckplan
