#include "lib/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/stop.h"

namespace ckplan {

namespace {

// Closes its file unless that is standard input.
class OpenFile {
 public:
  explicit OpenFile(int fd) : fd_(fd) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (fd_ > STDIN_FILENO) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

bool IsRegular(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

bool IsPipe(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode);
}

// Waits up to kPollMs for data or the end of the input.
bool WaitForInput(int fd) {
  constexpr int kPollMs = 100;
  pollfd waited{fd, POLLIN, 0};
  return poll(&waited, 1, kPollMs) != 0;
}

// Waits for a writer: until one opens the pipe, reads return the end of the input.
bool HasNoWriter(int fd) {
  constexpr int kMaxPolls = 50;  // Five seconds.
  for (int i = 0; i < kMaxPolls; ++i) {
    PollStop();
    if (WaitForInput(fd)) return false;
  }
  return true;
}

}  // namespace

Error IoError(std::string_view verb, const std::string& path, int reason) {
  return MakeError(ErrorCode::kIo,
                   fmt::format("cannot {} \"{}\": {}", verb, path, std::strerror(reason)));
}

Result<std::string> ReadWholeFile(const std::string& path) {
  const bool is_stdin = path == kStandardStream;
  // O_NONBLOCK: opening a named pipe must not wait forever for a writer.
  const OpenFile file(is_stdin ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_NONBLOCK));
  const std::string shown = is_stdin ? "standard input" : path;
  if (file.get() < 0) return IoError("read", shown, errno);
  const bool has_no_writer = !is_stdin && IsPipe(file.get()) && HasNoWriter(file.get());
  constexpr size_t kChunk = size_t{1} << 16;
  std::string text;
  while (text.size() <= kMaxTextBytes) {
    PollStop();
    const size_t old_size = text.size();
    text.resize(old_size + kChunk);
    const ssize_t count = read(file.get(), text.data() + old_size, kChunk);
    text.resize(old_size + static_cast<size_t>(count > 0 ? count : 0));
    if (count == 0 && has_no_writer && text.empty()) {
      return MakeError(ErrorCode::kIo,
                       fmt::format("cannot read \"{}\": nothing writes to this pipe", shown));
    }
    if (count == 0) return text;
    if (count < 0 && errno == EAGAIN) {  // The pipe has a slow writer.
      WaitForInput(file.get());
    } else if (count < 0 && errno != EINTR) {
      return IoError("read", shown, errno);
    }
  }
  return MakeError(
      ErrorCode::kIo,
      fmt::format("cannot read \"{}\": it is larger than the {} MiB limit for text files", shown,
                  kMaxTextBytes >> 20));
}

bool IsStream(const std::string& path) {
  if (path == kStandardStream) return true;
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

std::string PeekFile(const std::string& path, size_t count) {
  if (!IsRegular(path)) return {};
  const OpenFile file(open(path.c_str(), O_RDONLY));
  std::string text(count, '\0');
  const ssize_t got = file.get() < 0 ? -1 : read(file.get(), text.data(), count);
  text.resize(static_cast<size_t>(got > 0 ? got : 0));
  return text;
}

// Entries are never freed, since a signal handler may read them while others are added. They use
// little memory, as a program writes few files.
struct TemporaryName::Entry {
  const std::string path;
  std::atomic<bool> remove_on_exit = true;
  Entry* next = nullptr;
};

namespace {

std::atomic<void*> latest_entry = nullptr;
static_assert(std::atomic<void*>::is_always_lock_free, "a signal handler may read it");

}  // namespace

TemporaryName::TemporaryName(std::string path) : entry_(new Entry{std::move(path)}) {
  void* before = latest_entry;
  do {
    entry_->next = static_cast<Entry*>(before);
  } while (!latest_entry.compare_exchange_weak(before, entry_));
}

TemporaryName::~TemporaryName() {
  if (entry_->remove_on_exit) unlink(entry_->path.c_str());
  Keep();
}

const std::string& TemporaryName::path() const { return entry_->path; }

void TemporaryName::Keep() { entry_->remove_on_exit = false; }

void TemporaryName::RemoveAll() {
  for (auto* entry = static_cast<Entry*>(latest_entry.load()); entry != nullptr;
       entry = entry->next) {
    if (entry->remove_on_exit) unlink(entry->path.c_str());
  }
}

namespace {

namespace fs = std::filesystem;

bool IsPipeWithoutReader(const std::string& path, int fault) {
  struct stat status {};
  return fault == ENXIO && stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode);
}

// Opens an existing path for writing. A blocking open of a named pipe would wait for a reader
// forever and ignore time limits, so the open does not block, and a reader started at the same time
// as this program gets a second to open the pipe.
int OpenSpecialFile(const std::string& path) {
  constexpr int kMaxPolls = 100;
  constexpr timespec kPause{0, 10'000'000};
  int fd = open(path.c_str(), O_WRONLY | O_NONBLOCK);
  for (int i = 0; i < kMaxPolls && fd < 0 && IsPipeWithoutReader(path, errno); ++i) {
    PollStop();
    nanosleep(&kPause, nullptr);
    fd = open(path.c_str(), O_WRONLY | O_NONBLOCK);
  }
  // Writes wait until the reader takes the bytes.
  if (fd >= 0) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  return fd;
}

// Appends six unpredictable letters and digits. Callers retry if the file exists.
std::string AddRandomSuffix(const std::string& path) {
  constexpr std::string_view kDigits =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  constexpr int kLength = 6;
  uint64_t random = 0;
  CKPLAN_CHECK(getrandom(&random, sizeof(random), 0) == sizeof(random),
               "getrandom fills its buffer");
  std::string name = path + ".";
  for (int i = 0; i < kLength; ++i, random /= kDigits.size()) {
    name += kDigits[random % kDigits.size()];
  }
  return name;
}

Error NoReaderError(const std::string& path) {
  return MakeError(
      ErrorCode::kIo,
      fmt::format("cannot write \"{}\": nothing reads from this pipe; start the reader first",
                  path));
}

mode_t DefaultFileMode() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

}  // namespace

std::string LinkTarget(const std::string& path) {
  constexpr int kMaxLinks = 40;  // The limit of Linux.
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
    file->fd_ = OpenSpecialFile(path);
    if (file->fd_ < 0) {
      const int fault = errno;
      return IsPipeWithoutReader(path, fault) ? NoReaderError(path) : IoError("write", path, fault);
    }
  } else {
    file->target_ = LinkTarget(path);
    CKPLAN_RETURN_IF_ERROR(file->CreateTemporary());
  }
  return file;
}

// Registers the name before it creates the file, so that a signal in between leaves no file behind.
Result<Done> PendingFile::CreateTemporary() {
  constexpr mode_t kOwnerOnly = 0600;
  constexpr int kTries = 100;
  for (int i = 0; i < kTries && fd_ < 0; ++i) {
    temporary_.emplace(AddRandomSuffix(target_));
    fd_ = open(temporary_->path().c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kOwnerOnly);
    if (fd_ >= 0) break;
    temporary_->Keep();  // The file belongs to another program or does not exist.
    if (errno != EEXIST) return WriteError();
  }
  if (fd_ < 0 || !CopyModeFrom(target_)) return WriteError();
  return Done{};
}

// If the file's group cannot be changed to the old one, its group gets only the rights that all
// users have.
bool PendingFile::CopyModeFrom(const std::string& old_file) const {
  struct stat old {};
  if (stat(old_file.c_str(), &old) != 0) return fchmod(fd_, DefaultFileMode()) == 0;
  mode_t mode = old.st_mode & 0777;
  const bool has_group = fchown(fd_, old.st_uid, old.st_gid) == 0 ||
                         fchown(fd_, static_cast<uid_t>(-1), old.st_gid) == 0;
  if (!has_group) mode = (mode & 0707) | (mode & ((mode & 07) << 3));
  return fchmod(fd_, mode) == 0;
}

PendingFile::~PendingFile() {
  if (fd_ >= 0) close(fd_);
}

Error PendingFile::WriteError() const { return IoError("write", shown_path_, errno); }

Result<Done> PendingFile::Append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = write(fd_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return WriteError();
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return Done{};
}

Result<Done> PendingFile::Finish() {
  if (close(std::exchange(fd_, -1)) != 0) return WriteError();
  return Done{};
}

Result<Done> PendingFile::Commit() {
  if (fd_ >= 0) CKPLAN_RETURN_IF_ERROR(Finish());
  if (!temporary_) return Done{};
  if (std::rename(temporary_->path().c_str(), target_.c_str()) != 0) return WriteError();
  temporary_->Keep();
  return Done{};
}

}  // namespace ckplan
