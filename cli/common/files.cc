#include "cli/common/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

namespace ckplan {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ > STDERR_FILENO) close(fd_);
  }
  int get() const { return fd_; }
  // Some file systems report only here that the disk is full.
  bool Close() { return close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

bool WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    text.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

bool IsSpecial(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

// The file behind symbolic links, so that a rename does not replace the link.
std::string TargetOf(const std::string& path) {
  std::error_code fault;
  const std::filesystem::path target = std::filesystem::weakly_canonical(path, fault);
  return fault ? path : target.string();
}

std::string FolderOf(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

// A complete file beside its place, under another name. It is removed unless it is committed.
class PendingFile {
 public:
  static Result<std::unique_ptr<PendingFile>> Create(const OutputFile& file) {
    auto pending = std::make_unique<PendingFile>();
    pending->shown_path_ = file.path;
    pending->target_ = TargetOf(file.path);
    // mkstemp(3) replaces the six X, which it needs, so that the name is unique.
    std::string name = pending->target_ + ".XXXXXX";
    Descriptor fd(mkstemp(name.data()));
    if (fd.get() < 0) return IoError("write", file.path, errno);
    pending->temporary_ = name;
    const mode_t mask = umask(0);
    umask(mask);
    const bool is_written = fchmod(fd.get(), 0666 & ~mask) == 0 && WriteAll(fd.get(), file.text);
    if (!is_written || !fd.Close()) return IoError("write", file.path, errno);
    return pending;
  }

  ~PendingFile() {
    if (!temporary_.empty()) unlink(temporary_.c_str());
  }

  Result<Done> Commit() {
    if (std::rename(temporary_.c_str(), target_.c_str()) != 0) {
      return IoError("write", shown_path_, errno);
    }
    temporary_.clear();
    return Done{};
  }

 private:
  std::string shown_path_;
  std::string target_;
  std::string temporary_;
};

Result<Done> WriteSpecial(const OutputFile& file) {
  Descriptor fd(open(file.path.c_str(), O_WRONLY));
  if (fd.get() < 0 || !WriteAll(fd.get(), file.text)) return IoError("write", file.path, errno);
  return Done{};
}

}  // namespace

Result<Done> CheckWritable(const std::string& path) {
  if (path == kStandardStream) return Done{};
  struct stat status {};
  const std::string target = TargetOf(path);
  const bool exists = stat(target.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) return IoError("write", path, EISDIR);
  const bool is_renamed_over = !exists || S_ISREG(status.st_mode);
  const std::string needed = is_renamed_over ? FolderOf(target) : target;
  if (access(needed.c_str(), W_OK) != 0) return IoError("write", path, errno);
  return Done{};
}

Result<Done> WriteFiles(const std::vector<OutputFile>& files) {
  std::vector<std::unique_ptr<PendingFile>> pending;
  for (const OutputFile& file : files) {
    if (IsSpecial(file.path)) continue;
    CKPLAN_ASSIGN_OR_RETURN(auto one, PendingFile::Create(file));
    pending.push_back(std::move(one));
  }
  for (const OutputFile& file : files) {
    if (IsSpecial(file.path)) CKPLAN_RETURN_IF_ERROR(WriteSpecial(file));
  }
  for (const auto& one : pending) CKPLAN_RETURN_IF_ERROR(one->Commit());
  return Done{};
}

}  // namespace ckplan
