// A limit on counted work instead of time, so that every machine does the same within it. Once the
// polls (stop.h) add up to the limit, the search is asked to stop, as by a time limit; a little
// later it is ended wherever it is.
//
//   WorkLimit limit(outer_token, 1'000'000);
//   const auto found = limit.Run([&](std::stop_token stop) { return Search(stop); });
//   if (!found) ...  // the limit ended the search before it had a result
//
// The limit applies only inside Run, and a stop that it causes never leaves Run. So nothing outside
// can take spent work for a time limit or for Ctrl-C.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <utility>

#include "lib/base/stop.h"

namespace ckplan {

// Counts the polls of the thread that calls Run, and no others. Several searches may share a limit.
class WorkLimit {
 public:
  WorkLimit(std::stop_token outer, int64_t work)
      : work_(work), outer_(std::move(outer), [this] { searches_.request_stop(); }) {}
  WorkLimit(const WorkLimit&) = delete;
  WorkLimit& operator=(const WorkLimit&) = delete;

  // Returns what `search` returns, or nothing if it was ended. Throws Stopped if a scope around the
  // call is stopped.
  template <typename Search>
  auto Run(const Search& search) -> std::optional<decltype(search(std::stop_token()))> {
    try {
      const StopScope scope(everything_.get_token(), [this](int64_t done) { Count(done); });
      return search(searches_.get_token());
    } catch (const Stopped&) {
      PollStop(0);
      return std::nullopt;
    }
  }

  // Returns whether searches were asked to stop because the work is done, not from outside.
  bool is_spent() const { return counted_ >= work_; }

 private:
  void Count(int64_t done) {
    counted_ += done;
    if (is_spent()) searches_.request_stop();
    if (counted_ >= work_ + work_ / kGrace) everything_.request_stop();
  }

  // A search without a plan at its end may complete the plan at hand, within a quarter of the work.
  static constexpr int64_t kGrace = 4;

  const int64_t work_;
  int64_t counted_ = 0;
  std::stop_source searches_;
  std::stop_source everything_;
  const std::stop_callback<std::function<void()>> outer_;
};

}  // namespace ckplan
