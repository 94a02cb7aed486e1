#include "lib/base/read_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

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

// Waits a moment; returns whether there is data to read, or the end of the input.
bool WaitForInput(int fd) {
  constexpr int kMomentMs = 100;
  pollfd waited{fd, POLLIN, 0};
  return poll(&waited, 1, kMomentMs) != 0;
}

// A newly opened pipe looks as if it had ended until its first writer opens it.
bool HasNoWriter(int fd) {
  constexpr int kMoments = 50;  // Five seconds.
  for (int i = 0; i < kMoments; ++i) {
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
  const bool is_lonely = !is_stdin && IsPipe(file.get()) && HasNoWriter(file.get());
  constexpr size_t kChunk = size_t{1} << 16;
  std::string text;
  while (text.size() <= kMaxTextBytes) {
    PollStop();
    const size_t old_size = text.size();
    text.resize(old_size + kChunk);
    const ssize_t count = read(file.get(), text.data() + old_size, kChunk);
    text.resize(old_size + static_cast<size_t>(count > 0 ? count : 0));
    if (count == 0 && is_lonely && text.empty()) {
      return MakeError(ErrorCode::kIo,
                       fmt::format("cannot read \"{}\": nothing writes to this pipe", shown));
    }
    if (count == 0) return text;
    if (count < 0 && errno == EAGAIN) {  // The pipe has a writer, however slow.
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

}  // namespace ckplan
