// Reading files whole, and writing them so that a failure leaves nothing half written.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lib/base/result.h"

namespace ckplan {

// Reads whole files.
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

// Writes a file so that no reader ever sees half of it: the file is written beside its place under
// another name, and renamed once it is complete.
//
// A replaced file's permissions are kept and, where that is allowed, its owner. A symbolic link
// stays: the file it points to is replaced. Other hard links to that file keep the old contents.
// Devices and pipes are written to directly; a named pipe without a reader for a second is an
// error.

// Names a file that is removed unless Keep is called, however the program ends.
class TemporaryName {
 public:
  // The file will be removed from here on, whether or not it exists yet.
  explicit TemporaryName(std::string path);
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;
  ~TemporaryName();  // Removes the file.

  const std::string& path() const;
  void Keep();  // The file has been renamed, or is to stay.

  // Removes all registered files. It may be called at the end of a program that has no memory left,
  // and from signal handlers, which may run at any time and in any thread.
  static void RemoveAll();

 private:
  struct Entry;
  Entry* const entry_;
};

// Returns the path that `path` leads to through symbolic links, whether or not it exists.
std::string LinkTarget(const std::string& path);

// Returns whether the path exists and is not a regular file: a device, a pipe, a folder.
bool IsSpecialFile(const std::string& path);

class PendingFile {
 public:
  // kIo: no file can be written at `path`.
  static Result<std::unique_ptr<PendingFile>> Create(const std::string& path);
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;
  ~PendingFile();  // Removes the file unless it was committed.

  Result<Done> Append(std::string_view bytes);
  // Ends the appending. kIo: some file systems report only here that they are full.
  Result<Done> Finish();
  // Moves the file to its place, after finishing it if that has not been done. This is the last
  // call.
  Result<Done> Commit();

 private:
  PendingFile() = default;
  Result<Done> CreateBeside();
  bool TakeModeOf(const std::string& old_file) const;
  Error Failed() const;

  std::string shown_path_;
  std::string target_;
  std::optional<TemporaryName> temporary_;  // Absent for a special file.
  int fd_ = -1;
};

}  // namespace ckplan
