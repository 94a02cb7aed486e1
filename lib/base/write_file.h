// Writing a file so that nobody ever sees half of it: it is written beside its place under another
// name, and renamed once it is complete.
//
// What is replaced keeps its permissions and, where that is allowed, its owner. A symbolic link
// stays one: the file that it leads to is replaced. Other hard links to that file keep its old
// contents. Devices and pipes are written to directly; a named pipe that nobody reads to within a
// second is an error.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/result.h"
#include "lib/base/temporary_name.h"

namespace ckplan {

// The place that `path` leads to through symbolic links, whether or not there is a file.
std::string LinkTarget(const std::string& path);

// Whether something is there that is no regular file: a device, a pipe, a folder.
bool IsSpecialFile(const std::string& path);

class PendingFile {
 public:
  // kIo: no file can be written there.
  static Result<std::unique_ptr<PendingFile>> Create(const std::string& path);
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;
  ~PendingFile();  // Removes what was not committed.

  Result<Done> Append(std::string_view bytes);
  // Nothing more is appended. kIo: some file systems say only here that they are full.
  Result<Done> Finish();
  // Puts the file in its place, finished before or now. The last call.
  Result<Done> Commit();

 private:
  PendingFile() = default;
  Result<Done> CreateBeside();
  bool TakeModeOf(const std::string& old_file) const;
  Error Failed() const;

  std::string shown_path_;
  std::string target_;
  std::optional<TemporaryName> temporary_;  // None for a special file.
  int fd_ = -1;
};

}  // namespace ckplan
