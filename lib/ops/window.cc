#include "lib/ops/window.h"

#include <algorithm>

namespace ckplan {

namespace {

std::vector<int64_t> IntsOr(const OpSpec& spec, std::string_view attribute,
                            const std::vector<int64_t>& otherwise) {
  std::vector<int64_t> ints = spec.Ints(attribute);
  return ints.size() == otherwise.size() ? ints : otherwise;
}

// Splits what the windows reach beyond the input. `extra`: output_padding of a transposed one.
void PadToFit(Window& window, const std::vector<int64_t>& extra, bool gives_odd_to_begin) {
  for (size_t i = 0; i < window.rank(); ++i) {
    const int64_t reach = (window.out[i] - 1) * window.strides[i] + window.extent(i) + extra[i];
    const int64_t total = std::max<int64_t>(0, reach - window.in[i]);
    window.begin[i] = gives_odd_to_begin ? total - total / 2 : total / 2;
    window.end[i] = total - window.begin[i];
  }
}

}  // namespace

Window ReadWindow(const OpSpec& spec, const Operand& in, const Operand& out,
                  const std::vector<int64_t>& kernel, bool is_transposed) {
  Window window;
  window.in.assign(in.dims.begin() + 2, in.dims.end());
  window.out.assign(out.dims.begin() + 2, out.dims.end());
  const size_t rank = window.rank();
  const std::vector<int64_t> ones(rank, 1);
  window.kernel = spec.Has("kernel_shape") ? spec.Ints("kernel_shape") : kernel;
  window.strides = IntsOr(spec, "strides", ones);
  window.dilations = IntsOr(spec, "dilations", ones);
  const std::vector<int64_t> pads = IntsOr(spec, "pads", std::vector<int64_t>(2 * rank, 0));
  window.begin.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(rank));
  window.end.assign(pads.begin() + static_cast<std::ptrdiff_t>(rank), pads.end());
  const std::string rule = spec.String("auto_pad", "NOTSET");
  const std::vector<int64_t> extra = IntsOr(spec, "output_padding", std::vector<int64_t>(rank, 0));
  if (rule == "SAME_UPPER" || rule == "SAME_LOWER") {
    PadToFit(window, extra, rule == "SAME_LOWER");
  } else if (is_transposed && spec.Has("output_shape")) {
    PadToFit(window, extra, true);
  }
  return window;
}

}  // namespace ckplan
