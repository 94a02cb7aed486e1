#include "lib/base/read_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lib/base/stop.h"

namespace ckplan {
namespace {

// Closes all files but standard input.
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

}  // namespace

Error IoError(std::string_view verb, const std::string& path, int reason) {
  return MakeError(ErrorCode::kIo,
                   fmt::format("cannot {} \"{}\": {}", verb, path, std::strerror(reason)));
}

Result<std::string> ReadWholeFile(const std::string& path) {
  const bool is_stdin = path == kStandardStream;
  const OpenFile file(is_stdin ? STDIN_FILENO : open(path.c_str(), O_RDONLY));
  const std::string shown = is_stdin ? "standard input" : path;
  if (file.get() < 0) return IoError("read", shown, errno);
  constexpr size_t kChunk = size_t{1} << 16;
  std::string text;
  for (;;) {
    PollStop();
    const size_t old_size = text.size();
    text.resize(old_size + kChunk);
    const ssize_t count = read(file.get(), text.data() + old_size, kChunk);
    text.resize(old_size + static_cast<size_t>(count > 0 ? count : 0));
    if (count == 0) return text;
    if (count < 0 && errno != EINTR) return IoError("read", shown, errno);
  }
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
