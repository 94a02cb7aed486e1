#include "lib/base/write_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "lib/base/read_file.h"

namespace ckplan {
namespace {

namespace fs = std::filesystem;

mode_t ModeOfNewFiles() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

}  // namespace

std::string LinkTarget(const std::string& path) {
  constexpr int kMaxLinks = 40;  // As Linux follows.
  std::error_code fault;
  fs::path place = path;
  for (int i = 0; i < kMaxLinks && fs::is_symlink(fs::symlink_status(place, fault)); ++i) {
    place = place.parent_path() / fs::read_symlink(place, fault);
  }
  const fs::path folder = place.has_parent_path() ? place.parent_path() : fs::path(".");
  const fs::path real_folder = fs::canonical(folder, fault);
  return fault ? place.string() : (real_folder / place.filename()).string();
}

bool IsSpecialFile(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

Result<std::unique_ptr<PendingFile>> PendingFile::Create(const std::string& path) {
  std::unique_ptr<PendingFile> file(new PendingFile);
  file->shown_path_ = path;
  if (IsSpecialFile(path)) {
    file->fd_ = open(path.c_str(), O_WRONLY);
    if (file->fd_ < 0) return file->Failed();
  } else {
    file->target_ = LinkTarget(path);
    CKPLAN_RETURN_IF_ERROR(file->CreateBeside());
  }
  return file;
}

Result<Done> PendingFile::CreateBeside() {
  // mkstemp(3) replaces the six X, which it needs, so that the name is unique.
  std::string name = target_ + ".XXXXXX";
  fd_ = mkstemp(name.data());
  if (fd_ < 0) return Failed();
  temporary_.emplace(std::move(name));
  if (!TakeModeOf(target_)) return Failed();
  return Done{};
}

// A group that may not be given the file is given no more than everybody else.
bool PendingFile::TakeModeOf(const std::string& old_file) const {
  struct stat old {};
  if (stat(old_file.c_str(), &old) != 0) return fchmod(fd_, ModeOfNewFiles()) == 0;
  mode_t mode = old.st_mode & 0777;
  const bool has_group = fchown(fd_, old.st_uid, old.st_gid) == 0 ||
                         fchown(fd_, static_cast<uid_t>(-1), old.st_gid) == 0;
  if (!has_group) mode = (mode & 0707) | (mode & ((mode & 07) << 3));
  return fchmod(fd_, mode) == 0;
}

PendingFile::~PendingFile() {
  if (fd_ >= 0) close(fd_);
}

Error PendingFile::Failed() const { return IoError("write", shown_path_, errno); }

Result<Done> PendingFile::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failed();
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return Done{};
}

Result<Done> PendingFile::Finish() {
  if (close(std::exchange(fd_, -1)) != 0) return Failed();
  return Done{};
}

Result<Done> PendingFile::Commit() {
  if (fd_ >= 0) CKPLAN_RETURN_IF_ERROR(Finish());
  if (!temporary_) return Done{};
  if (std::rename(temporary_->path().c_str(), target_.c_str()) != 0) return Failed();
  temporary_->Keep();
  return Done{};
}

}  // namespace ckplan
