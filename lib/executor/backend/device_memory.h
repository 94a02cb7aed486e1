// A backend's device: its memory, its links to the host, and its clock.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/result.h"

namespace ckplan {

// A link between device memory and host memory. Copies run concurrently with other device work,
// which waits for a copy only at Wait.
struct CopyLinkOptions {
  bool is_half_duplex = false;  // Copies in the two directions exclude each other.
  // Delays each copy until something waits for it, so that a missing wait shows up as wrong
  // contents. Only for links that schedule their own copies.
  bool is_late = false;
};

class CopyLink {
 public:
  CopyLink() = default;
  virtual ~CopyLink() = default;  // Waits for all copies.
  CopyLink(const CopyLink&) = delete;
  CopyLink& operator=(const CopyLink&) = delete;

  // Allocates host memory that copies can use. kInfeasible: the host has too little memory.
  virtual Result<void*> AllocateHost(int64_t bytes) = 0;
  // Waits for all copies first. `memory` may be null.
  virtual void ReleaseHost(void* memory) = 0;

  // Start a copy after all work submitted so far and after all earlier copies in the same
  // direction. Return a number for Wait. Don't touch the memory until the copy has been waited for.
  virtual size_t CopyOut(void* host, const void* device, int64_t bytes) = 0;
  virtual size_t CopyIn(void* device, const void* host, int64_t bytes) = 0;
  // Fills host memory with a byte, before any later copy out.
  virtual void FillHost(void* host, int byte, int64_t bytes) = 0;
  // Makes device work submitted from now on wait for the copy. Wait exactly once for each copy.
  virtual void Wait(size_t copy) = 0;
};

// Runs tasks one after the other in its own thread.
class WorkLane {
 public:
  explicit WorkLane(bool is_late) : is_late_(is_late), thread_([this] { Work(); }) {}
  ~WorkLane() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      needed_ = begun_;
      has_ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  WorkLane(const WorkLane&) = delete;
  WorkLane& operator=(const WorkLane&) = delete;

  // Returns the task's number, counted from 1.
  size_t Add(std::function<void()> work) {
    const std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back(std::move(work));
    ++begun_;
    if (!is_late_) needed_ = begun_;
    changed_.notify_all();
    return begun_;
  }
  void WaitFor(size_t number) {
    std::unique_lock<std::mutex> lock(mutex_);
    needed_ = std::max(needed_, number);
    changed_.notify_all();
    changed_.wait(lock, [&] { return done_ >= number; });
  }
  void WaitForAll() {
    size_t all = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      all = begun_;
    }
    WaitFor(all);
  }

 private:
  void Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return done_ < needed_ || has_ended_; });
      if (done_ == needed_) return;
      const std::function<void()> work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      work();
      lock.lock();
      ++done_;
      changed_.notify_all();
    }
  }

  const bool is_late_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;  // Tasks that have not begun.
  size_t begun_ = 0;                         // Number of tasks begun.
  size_t needed_ = 0;                        // Tasks up to this number may run.
  size_t done_ = 0;
  bool has_ended_ = false;
  std::thread thread_;  // Must be the last member: the thread uses the others.
};

// The link of a device that uses host memory: one thread per direction copies bytes while the
// device works. Waiting for a copy blocks the caller.
class ThreadLink final : public CopyLink {
 public:
  explicit ThreadLink(const CopyLinkOptions& options)
      : out_(options.is_late), in_(options.is_late), shares_lane_(options.is_half_duplex) {}

  Result<void*> AllocateHost(int64_t bytes) override {
    const auto size =
        static_cast<size_t>((std::max<int64_t>(bytes, 1) + kLine - 1) / kLine * kLine);
    void* const memory = std::aligned_alloc(kLine, size);
    if (memory != nullptr) return memory;
    return MakeError(ErrorCode::kInfeasible,
                     "the host has too little memory for what the plan moves there");
  }
  void ReleaseHost(void* memory) override {
    out_.WaitForAll();
    in_.WaitForAll();
    std::free(memory);
  }

  size_t CopyOut(void* host, const void* device, int64_t bytes) override {
    return LaneNumber(false, out_.Add(Copy(host, device, bytes)));
  }
  size_t CopyIn(void* device, const void* host, int64_t bytes) override {
    if (shares_lane_) return LaneNumber(false, out_.Add(Copy(device, host, bytes)));
    return LaneNumber(true, in_.Add(Copy(device, host, bytes)));
  }
  void FillHost(void* host, int byte, int64_t bytes) override {
    out_.Add([=] { std::memset(host, byte, static_cast<size_t>(bytes)); });
  }
  void Wait(size_t copy) override { (copy % 2 == 0 ? out_ : in_).WaitFor(copy / 2); }

 private:
  static constexpr int64_t kLine = 64;

  static std::function<void()> Copy(void* to, const void* from, int64_t bytes) {
    return [=] { std::memcpy(to, from, static_cast<size_t>(bytes)); };
  }
  // The last bit selects the lane.
  static size_t LaneNumber(bool is_in, size_t number) { return 2 * number + (is_in ? 1 : 0); }

  WorkLane out_;
  WorkLane in_;
  const bool shares_lane_;
};

// A named use of device memory, in bytes.
struct MemoryUse {
  std::string what;
  int64_t bytes = 0;
};

// The memory of a device, and copies to, from and within it.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  virtual ~DeviceMemory() = default;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Returns roughly how many bytes Allocate can still provide.
  virtual int64_t AvailableBytes() const = 0;
  // kInfeasible: the device does not have that much memory. 0 bytes are allowed.
  virtual Result<void*> Allocate(int64_t bytes) = 0;
  virtual void Release(void* memory) = 0;
  // Allocates from the driver's memory pool. The pool follows the order of the device's work, so
  // released memory may be allocated again before the work that used it has finished. Without a
  // pool, this is Allocate.
  virtual Result<void*> AllocatePooled(int64_t bytes) { return Allocate(bytes); }
  virtual void ReleasePooled(void* memory) { Release(memory); }
  // The pool's peak: the maximum number of bytes in use since the last reset, as counted by the
  // driver. PooledPeak returns nothing if the driver doesn't count.
  virtual void ResetPooledPeak() {}
  virtual std::optional<int64_t> PooledPeak() { return std::nullopt; }
  // Returns memory in use beyond allocations, such as contexts and library handles.
  virtual std::vector<MemoryUse> Overheads() const { return {}; }

  // Returns a link to host memory. It must not outlive the device. The default is for devices that
  // use host memory.
  virtual std::unique_ptr<CopyLink> MakeCopyLink(const CopyLinkOptions& options) {
    return std::make_unique<ThreadLink>(options);
  }

  // Upload and Download wait until the bytes have been copied.
  virtual void Upload(void* to_device, const void* from_host, int64_t bytes) = 0;
  virtual void Download(void* to_host, const void* from_device, int64_t bytes) = 0;
  // Copy and Zero may return before the bytes are written; Synchronize waits for all work.
  virtual void Copy(void* to, const void* from, int64_t bytes) = 0;
  virtual void Zero(void* memory, int64_t bytes) = 0;
  virtual void Synchronize() = 0;
};

// Measures how long the device works, without disturbing it.

// Marks points in the sequence of device work. A mark is queued like other work, and nothing waits
// for it.
class DeviceClock {
 public:
  DeviceClock() = default;
  virtual ~DeviceClock() = default;
  DeviceClock(const DeviceClock&) = delete;
  DeviceClock& operator=(const DeviceClock&) = delete;

  // Returns the mark's number, counted from 0.
  virtual size_t Mark() = 0;
  // The device must have reached both marks, so call Synchronize first.
  virtual double SecondsBetween(size_t first, size_t second) = 0;
};

// The clock of a synchronous device, which finishes its work before a call returns.
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
