// Reads whole files, and writes files so that a failure leaves no partial file behind.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/result.h"

namespace ckplan {

// As a path: standard input or output.
inline constexpr std::string_view kStandardStream = "-";

// kIo: "cannot VERB "PATH": REASON", where `reason` is an errno.
Error IoError(std::string_view verb, const std::string& path, int reason);

inline constexpr size_t kMaxTextBytes = size_t{256} << 20;  // Enough for a plan of a million nodes.

// Reads a whole file; "-" is standard input. kIo: the file cannot be read, is larger than
// kMaxTextBytes, or is a named pipe that no writer opens within a few seconds.
Result<std::string> ReadWholeFile(const std::string& path);

// Returns true for inputs that can be read only once, front to back: standard input, pipes and
// devices. Models cannot be read from these, since they are memory-mapped.
bool IsStream(const std::string& path);

// Returns up to `count` bytes from the start of a regular file; "" if it cannot be read.
std::string PeekFile(const std::string& path, size_t count);

// PendingFile writes a file under a temporary name in the same folder and renames it once it is
// complete, so that no reader sees a partial file.
//
// The new file keeps the permissions of the file it replaces and, if allowed, its owner. A symbolic
// link stays: the file it points to is replaced. Other hard links to that file keep the old
// contents. Devices and pipes are written directly; a named pipe that has no reader within a second
// is an error.

// The name of a file that is removed, however the program ends, unless Keep is called.
class TemporaryName {
 public:
  // Registers the name for removal. The file need not exist yet.
  explicit TemporaryName(std::string path);
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;
  ~TemporaryName();  // Removes the file.

  const std::string& path() const;
  void Keep();  // Cancels the removal.

  // Removes all registered files. Allocates nothing and takes no locks, so that signal handlers and
  // a program that is out of memory can call it.
  static void RemoveAll();

 private:
  struct Entry;
  Entry* const entry_;
};

// Follows the symbolic links from `path`. The result need not exist.
std::string LinkTarget(const std::string& path);

// Returns true if the path exists and is not a regular file, such as a device, pipe or folder.
bool IsSpecialFile(const std::string& path);

class PendingFile {
 public:
  // kIo: `path` cannot be written.
  static Result<std::unique_ptr<PendingFile>> Create(const std::string& path);
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;
  ~PendingFile();  // Removes the file unless it was committed.

  Result<Done> Append(std::string_view bytes);
  // Closes the file. kIo: some file systems report only now that they are full.
  Result<Done> Finish();
  // Finishes the file if necessary and renames it to its path. Must be the last call.
  Result<Done> Commit();

 private:
  PendingFile() = default;
  Result<Done> CreateTemporary();
  bool CopyModeFrom(const std::string& old_file) const;
  Error WriteError() const;

  std::string shown_path_;
  std::string target_;
  std::optional<TemporaryName> temporary_;  // Absent for a special file.
  int fd_ = -1;
};

}  // namespace ckplan
