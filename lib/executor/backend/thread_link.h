// A link of a device whose memory is that of the host: a thread for each direction copies bytes
// while the device works. Waiting for a copy stops the caller until the copy is there.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "lib/executor/backend/copy_link.h"

namespace ckplan {

// Does one piece of work after the other in a thread of its own.
class WorkLane {
 public:
  explicit WorkLane(bool is_late) : is_late_(is_late), thread_([this] { Work(); }) {}
  ~WorkLane() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      wanted_ = begun_;
      has_ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  WorkLane(const WorkLane&) = delete;
  WorkLane& operator=(const WorkLane&) = delete;

  // Returns the number of the work, counted from 1.
  size_t Add(std::function<void()> work) {
    const std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back(std::move(work));
    ++begun_;
    if (!is_late_) wanted_ = begun_;
    changed_.notify_all();
    return begun_;
  }
  void WaitFor(size_t number) {
    std::unique_lock<std::mutex> lock(mutex_);
    wanted_ = std::max(wanted_, number);
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
      changed_.wait(lock, [&] { return done_ < wanted_ || has_ended_; });
      if (done_ == wanted_) return;
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
  std::deque<std::function<void()>> queue_;  // What has not begun.
  size_t begun_ = 0;                         // How much was added.
  size_t wanted_ = 0;                        // Work up to this number may be done.
  size_t done_ = 0;
  bool has_ended_ = false;
  std::thread thread_;  // The last member: it uses the others.
};

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
    return Numbered(false, out_.Add(Copy(host, device, bytes)));
  }
  size_t CopyIn(void* device, const void* host, int64_t bytes) override {
    if (shares_lane_) return Numbered(false, out_.Add(Copy(device, host, bytes)));
    return Numbered(true, in_.Add(Copy(device, host, bytes)));
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
  // The last bit says which lane the work is in.
  static size_t Numbered(bool is_in, size_t number) { return 2 * number + (is_in ? 1 : 0); }

  WorkLane out_;
  WorkLane in_;
  const bool shares_lane_;
};

}  // namespace ckplan
