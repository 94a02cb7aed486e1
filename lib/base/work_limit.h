// A limit on counted work instead of time, so that every machine does the same within it. Once the
// polls (stop.h) add up to the limit, searches are asked to stop, as by a time limit; a little
// later everything is asked to stop.
//
//   const WorkLimit limit(outer_token, 1'000'000);
//   Search(limit.token());   // ends with the best so far, by either stop
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <utility>

#include "lib/base/stop.h"

namespace ckplan {

// Counts the polls of the thread that creates the limit, and no others.
class WorkLimit {
 public:
  WorkLimit(std::stop_token outer, int64_t work)
      : work_(work),
        outer_(std::move(outer), [this] { searches_.request_stop(); }),
        scope_(everything_.get_token(), [this](int64_t done) { Count(done); }) {}
  WorkLimit(const WorkLimit&) = delete;
  WorkLimit& operator=(const WorkLimit&) = delete;

  std::stop_token token() const { return searches_.get_token(); }

 private:
  void Count(int64_t done) {
    counted_ += done;
    if (counted_ >= work_) searches_.request_stop();
    if (counted_ >= work_ + work_ / kGrace) everything_.request_stop();
  }

  // A search without a plan at its end may complete the plan at hand, within a quarter of the work.
  static constexpr int64_t kGrace = 4;

  const int64_t work_;
  int64_t counted_ = 0;
  std::stop_source searches_;
  std::stop_source everything_;
  const std::stop_callback<std::function<void()>> outer_;
  const StopScope scope_;
};

}  // namespace ckplan
