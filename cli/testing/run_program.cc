#include "cli/testing/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>

#include "lib/base/check.h"

namespace ckplan {
namespace {

// A limit on silence, because a program that waits forever for input uses no CPU time.
constexpr int kSilenceMs = 3'600'000;

struct Pipe {
  Pipe() { CKPLAN_CHECK(pipe2(ends.data(), O_CLOEXEC) == 0, "tests can open pipes"); }
  int read_end() const { return ends[0]; }
  int write_end() const { return ends[1]; }
  std::array<int, 2> ends{};
};

// A pseudo-terminal that doesn't translate line ends.
struct PseudoTerminal {
  PseudoTerminal() {
    winsize size{};
    size.ws_col = 100;
    size.ws_row = 30;
    CKPLAN_CHECK(openpty(&master, &slave, nullptr, nullptr, &size) == 0,
                 "tests can open pseudo-terminals");
    termios modes{};
    tcgetattr(slave, &modes);
    modes.c_oflag &= ~static_cast<tcflag_t>(OPOST);
    tcsetattr(slave, TCSANOW, &modes);
    fcntl(master, F_SETFD, FD_CLOEXEC);
  }
  int master = -1;
  int slave = -1;
};

void LimitCpuTime(int seconds) {
  rlimit limit{};
  getrlimit(RLIMIT_CPU, &limit);
  limit.rlim_cur = std::min(limit.rlim_max, static_cast<rlim_t>(seconds));
  setrlimit(RLIMIT_CPU, &limit);
}

[[noreturn]] void BecomeProgram(const ProgramRun& run, int in, int out, int err) {
  // The command gets its own process group so that an interrupt reaches all its processes.
  setpgid(0, 0);
  LimitCpuTime(run.cpu_seconds);
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  unsetenv("NO_COLOR");
  unsetenv("FORCE_COLOR");
  setenv("TERM", "xterm", 1);
  for (const std::string& setting : run.environment) {
    const size_t equals = setting.find('=');
    setenv(setting.substr(0, equals).c_str(), setting.substr(equals + 1).c_str(), 1);
  }
  if (chdir(run.folder.c_str()) != 0) _exit(127);
  execl("/bin/sh", "sh", "-c", run.command.c_str(), static_cast<char*>(nullptr));
  _exit(127);
}

void WriteInput(int fd, const std::string& input) {
  size_t written = 0;
  while (written < input.size()) {
    const ssize_t count = write(fd, input.data() + written, input.size() - written);
    if (count < 0 && errno != EINTR) break;  // EPIPE: the program has closed its input.
    if (count > 0) written += static_cast<size_t>(count);
  }
  close(fd);
}

// Reads both streams to their ends.
bool ReadAll(int out, int err, ProgramResult* result) {
  std::array<pollfd, 2> ends = {pollfd{out, POLLIN, 0}, pollfd{err, POLLIN, 0}};
  const std::array<std::string*, 2> texts = {&result->out, &result->err};
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    const int ready = poll(ends.data(), ends.size(), kSilenceMs);
    if (ready == 0) return false;
    for (size_t i = 0; i < ends.size() && ready > 0; ++i) {
      if (ends[i].fd < 0 || ends[i].revents == 0) continue;
      std::array<char, 4096> chunk{};
      const ssize_t count = read(ends[i].fd, chunk.data(), chunk.size());
      if (count > 0) texts[i]->append(chunk.data(), static_cast<size_t>(count));
      // Reading a terminal fails with EIO once its last writer has closed it.
      if (count == 0 || (count < 0 && errno != EINTR)) ends[i].fd = -1;
    }
  }
  return true;
}

int WaitFor(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  constexpr int kSignalBase = 128;
  return WIFEXITED(status) ? WEXITSTATUS(status) : kSignalBase + WTERMSIG(status);
}

}  // namespace

bool HasTerminals() {
  int master = -1;
  int slave = -1;
  if (openpty(&master, &slave, nullptr, nullptr, nullptr) != 0) return false;
  close(master);
  close(slave);
  return true;
}

ProgramResult RunProgram(const ProgramRun& run) {
  signal(SIGPIPE, SIG_IGN);
  const Pipe in;
  const Pipe out;
  const Pipe err;
  const bool has_terminal = run.streams == Streams::kTerminal;
  std::optional<PseudoTerminal> terminal;
  if (has_terminal) terminal.emplace();
  const int out_end = has_terminal ? terminal->slave : out.write_end();
  const int err_end = run.streams == Streams::kApart ? err.write_end() : out_end;
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGPIPE, SIG_DFL);
    BecomeProgram(run, in.read_end(), out_end, err_end);
  }
  for (const int end : {in.read_end(), out.write_end(), err.write_end()}) close(end);
  if (has_terminal) close(terminal->slave);
  WriteInput(in.write_end(), run.input);
  ProgramResult result;
  const int main_end = has_terminal ? terminal->master : out.read_end();
  if (!ReadAll(main_end, err.read_end(), &result)) kill(-child, SIGKILL);
  result.status = WaitFor(child);
  for (const int end : {out.read_end(), err.read_end()}) close(end);
  if (has_terminal) close(terminal->master);
  return result;
}

}  // namespace ckplan
