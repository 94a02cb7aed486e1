// Measures how long a device works, without disturbing it.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

namespace ckplan {

// Marks points in the order of a device's work. A mark is queued like other work, and nothing waits
// for it.
class DeviceClock {
 public:
  DeviceClock() = default;
  virtual ~DeviceClock() = default;
  DeviceClock(const DeviceClock&) = delete;
  DeviceClock& operator=(const DeviceClock&) = delete;

  // Returns the mark's number, counted from 0.
  virtual size_t Mark() = 0;
  // The device must have reached both marks: call Synchronize before.
  virtual double SecondsBetween(size_t first, size_t second) = 0;
};

// The clock of a device that does its work before the call returns.
class HostClock final : public DeviceClock {
 public:
  size_t Mark() override {
    marks_.push_back(std::chrono::steady_clock::now());
    return marks_.size() - 1;
  }
  double SecondsBetween(size_t first, size_t second) override {
    return std::chrono::duration<double>(marks_[second] - marks_[first]).count();
  }

 private:
  std::vector<std::chrono::steady_clock::time_point> marks_;
};

}  // namespace ckplan
