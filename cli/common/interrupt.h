// Ctrl-C and the time limit, as a stop token for the solvers.
//
// While an Interrupt lives, the first Ctrl-C asks for a stop instead of killing the program; the
// second one kills it. Only one may live at a time.
#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <thread>

namespace ckplan {

class Interrupt {
 public:
  explicit Interrupt(std::optional<std::chrono::milliseconds> time_limit);
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  ~Interrupt();

  std::stop_token token() const { return source_.get_token(); }
  bool was_interrupted() const;  // True as soon as the signal has come.

 private:
  void Watch(std::chrono::steady_clock::time_point deadline);

  std::stop_source source_;
  std::thread watcher_;
};

}  // namespace ckplan
