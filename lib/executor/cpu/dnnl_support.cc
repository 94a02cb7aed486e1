#include "lib/executor/cpu/dnnl_support.h"

#include <fmt/format.h>

#include <unordered_map>

#include "lib/executor/cpu/registry.h"

namespace ckplan::cpu {

namespace {

constexpr int64_t kCacheLine = 64;

dnnl::memory Wrap(const DnnlDevice& device, const dnnl::memory::desc& desc, const void* at) {
  return {desc, device.engine, const_cast<void*>(at)};  // NOLINT: oneDNN has no const memory.
}

}  // namespace

int64_t WorkspacePlan::Add(int64_t bytes) {
  const int64_t offset = size_;
  size_ += (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
  return offset;
}

float* FloatsAt(void* workspace, int64_t offset) {
  const auto address = reinterpret_cast<uintptr_t>(workspace);
  const uintptr_t first = (address + kCacheLine - 1) / kCacheLine * kCacheLine;
  char* at = static_cast<char*>(workspace) + (first - address) + offset;
  return reinterpret_cast<float*>(at);
}

void DnnlPrimitive::Run(const DnnlDevice& device, std::initializer_list<DnnlArgument> arguments,
                        void* workspace) const {
  std::unordered_map<int, dnnl::memory> memories;
  for (const DnnlArgument& argument : arguments) {
    memories.emplace(argument.id, Wrap(device, *argument.desc, argument.at));
  }
  if (scratchpad_.get_size() > 0) {
    memories.emplace(DNNL_ARG_SCRATCHPAD, Wrap(device, scratchpad_, workspace));
  }
  dnnl::stream stream = device.stream;
  primitive_.execute(stream, memories);
}

dnnl::primitive_attr ScratchpadAttributes() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

LayoutChange::LayoutChange(const DnnlDevice& device, const dnnl::memory::desc& from,
                           const dnnl::memory::desc& to)
    : is_needed_(from != to), from_(from), to_(to) {
  if (!is_needed_) return;
  primitive_ = DnnlPrimitive::Of<dnnl::reorder>(dnnl::reorder::primitive_desc(
      device.engine, from, device.engine, to, ScratchpadAttributes()));
}

void LayoutChange::Run(const DnnlDevice& device, const void* from, void* to,
                       void* workspace) const {
  if (!is_needed_) return;
  primitive_.Run(device, {{DNNL_ARG_FROM, &from_, from}, {DNNL_ARG_TO, &to_, to}}, workspace);
}

dnnl::memory::desc PlainDesc(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return {dims, dnnl::memory::data_type::f32, strides};
}

Result<std::unique_ptr<PreparedOp>> CatchDnnlErrors(
    const OpSpec& spec, const std::function<std::unique_ptr<PreparedOp>()>& make) {
  try {
    return make();
  } catch (const dnnl::error& error) {
    return Unsupported(spec, fmt::format("oneDNN has no kernel for it ({})", error.message));
  }
}

}  // namespace ckplan::cpu
