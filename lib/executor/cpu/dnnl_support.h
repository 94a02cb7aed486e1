// oneDNN with plain pointers and scratch memory owned by the caller. These functions let oneDNN's
// exceptions pass; CatchDnnlErrors turns them into a Result.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "lib/base/result.h"
#include "lib/executor/backend/backend.h"

namespace ckplan::cpu {

// Offsets of one call's buffers within its workspace. Each buffer starts on a cache line, whatever
// the alignment of the workspace.
class WorkspacePlan {
 public:
  // Reserves a buffer of `bytes` bytes and returns its offset.
  int64_t Add(int64_t bytes);
  int64_t total() const { return size_ == 0 ? 0 : size_ + kSlack; }

 private:
  static constexpr int64_t kSlack = 64;
  int64_t size_ = 0;
};

// Returns the buffer that WorkspacePlan placed at `offset`.
float* FloatsAt(void* workspace, int64_t offset);

struct DnnlDevice {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

struct DnnlArgument {
  int id = 0;  // A constant DNNL_ARG_...
  const dnnl::memory::desc* desc = nullptr;
  const void* at = nullptr;
};

// A primitive whose caller provides its scratch memory.
class DnnlPrimitive {
 public:
  DnnlPrimitive() = default;
  DnnlPrimitive(dnnl::primitive primitive, dnnl::memory::desc scratchpad)
      : primitive_(std::move(primitive)), scratchpad_(std::move(scratchpad)) {}
  // `description` must have been created with ScratchpadAttributes.
  template <typename Primitive>
  static DnnlPrimitive Of(const typename Primitive::primitive_desc& description) {
    return {Primitive(description), description.scratchpad_desc()};
  }

  int64_t workspace() const { return static_cast<int64_t>(scratchpad_.get_size()); }
  void Run(const DnnlDevice& device, std::initializer_list<DnnlArgument> arguments,
           void* workspace) const;

 private:
  dnnl::primitive primitive_;
  dnnl::memory::desc scratchpad_;
};

dnnl::primitive_attr ScratchpadAttributes();

// Copies a tensor from one layout to another; does nothing if they are equal.
class LayoutChange {
 public:
  LayoutChange() = default;
  LayoutChange(const DnnlDevice& device, const dnnl::memory::desc& from,
               const dnnl::memory::desc& to);

  bool is_needed() const { return is_needed_; }
  int64_t workspace() const { return is_needed_ ? primitive_.workspace() : 0; }
  void Run(const DnnlDevice& device, const void* from, void* to, void* workspace) const;

 private:
  bool is_needed_ = false;
  DnnlPrimitive primitive_;
  dnnl::memory::desc from_;
  dnnl::memory::desc to_;
};

// Describes a row-major tensor.
dnnl::memory::desc PlainDesc(const std::vector<int64_t>& dims);

// Calls make() and turns oneDNN's exceptions into kUnsupported.
Result<std::unique_ptr<PreparedOp>> CatchDnnlErrors(
    const OpSpec& spec, const std::function<std::unique_ptr<PreparedOp>()>& make);

}  // namespace ckplan::cpu
