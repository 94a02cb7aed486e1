#include "lib/problem/ops/window.h"

#include <fmt/format.h>

#include <algorithm>

#include "lib/base/units.h"
#include "lib/problem/ops/op_checks.h"

namespace ckplan {

namespace {

// Checks that a list has `count` entries and that none is below `min`.
Result<Done> CheckEntries(const OpSpec& spec, std::string_view name, const Dims& entries,
                          size_t count, int64_t min) {
  if (entries.size() != count) {
    return InvalidOp(spec,
                     fmt::format("{} has {} entries instead of {}", name, entries.size(), count));
  }
  for (const int64_t entry : entries) {
    if (entry < min) {
      return InvalidOp(spec, fmt::format("{} is {}; each entry must be at least {}", name,
                                         TextOf(entries), min));
    }
    CKPLAN_RETURN_IF_ERROR(RequireLibrarySize(spec, fmt::format("an entry of {}", name), entry));
  }
  return Done{};
}

// Reads an attribute that is such a list; if it is empty or absent, all entries are `otherwise`.
Result<Dims> ReadEntries(const OpSpec& spec, std::string_view attribute, size_t count,
                         int64_t otherwise, int64_t min) {
  Dims entries = spec.Ints(attribute);
  if (entries.empty()) entries.assign(count, otherwise);
  CKPLAN_RETURN_IF_ERROR(
      CheckEntries(spec, fmt::format("attribute {}", attribute), entries, count, min));
  return entries;
}

Result<Dims> ReadKernel(const OpSpec& spec, size_t rank, const Dims& of_weights) {
  if (of_weights.empty() && spec.Ints("kernel_shape").empty()) {
    return InvalidOp(spec, "attribute kernel_shape is missing");
  }
  if (!of_weights.empty()) {
    CKPLAN_RETURN_IF_ERROR(CheckEntries(spec, "the kernel of its weights", of_weights, rank, 1));
  }
  if (spec.Ints("kernel_shape").empty()) return of_weights;
  CKPLAN_ASSIGN_OR_RETURN(Dims kernel, ReadEntries(spec, "kernel_shape", rank, 1, 1));
  if (of_weights.empty() || kernel == of_weights) return kernel;
  return InvalidOp(spec, fmt::format("attribute kernel_shape is {}, but the kernel of its weights "
                                     "is {}",
                                     TextOf(kernel), TextOf(of_weights)));
}

// Pads the input so that every window fits, half of the padding on each side. `extra` is the
// output_padding of a transposed convolution.
void PadToFit(Window& window, const std::vector<int64_t>& extra, bool gives_odd_to_begin) {
  for (size_t i = 0; i < window.rank(); ++i) {
    const int64_t reach = (window.out[i] - 1) * window.strides[i] + window.extent(i) + extra[i];
    const int64_t total = std::max<int64_t>(0, reach - window.in[i]);
    window.begin[i] = gives_odd_to_begin ? total - total / 2 : total / 2;
    window.end[i] = total - window.begin[i];
  }
}

bool IsSame(const OpSpec& spec) {
  const std::string rule = spec.String("auto_pad", "NOTSET");
  return rule == "SAME_UPPER" || rule == "SAME_LOWER";
}

bool HasOutputShape(const OpSpec& spec, WindowKind kind) {
  return kind == WindowKind::kTransposed && !spec.Ints("output_shape").empty();
}

Result<Done> CheckRule(const OpSpec& spec) {
  const std::string rule = spec.String("auto_pad", "NOTSET");
  if (rule == "NOTSET" || rule == "VALID" || IsSame(spec)) return Done{};
  return InvalidOp(spec, fmt::format("attribute auto_pad is \"{}\" instead of NOTSET, VALID, "
                                     "SAME_UPPER or SAME_LOWER",
                                     rule));
}

Error WrongOutput(const OpSpec& spec, size_t axis, int64_t actual, int64_t expected) {
  return InvalidOp(spec, fmt::format("spatial axis {} of its output is {}, but its windows give {}",
                                     axis, actual, expected));
}

// Returns the number of windows of a convolution or pool along an axis. `rounds_up` adds a window
// for leftover elements.
int64_t CountWindows(const Window& window, size_t axis, bool rounds_up) {
  const int64_t room =
      window.in[axis] + window.begin[axis] + window.end[axis] - window.extent(axis);
  const int64_t stride = window.strides[axis];
  return (room + (rounds_up ? stride - 1 : 0)) / stride + 1;
}

bool RoundsUp(const OpSpec& spec, WindowKind kind) {
  return kind == WindowKind::kPool && spec.Int("ceil_mode", 0) != 0;
}

// With `rounds_up`, a window may begin in the input and end beyond its padding.
Result<Done> CheckFits(const OpSpec& spec, const Window& window, size_t axis, bool rounds_up) {
  CKPLAN_RETURN_IF_ERROR(RequireLibrarySize(
      spec, fmt::format("the window on spatial axis {}", axis), window.extent(axis)));
  const int64_t missing =
      window.extent(axis) - (window.in[axis] + window.begin[axis] + window.end[axis]);
  if (missing <= 0 || (rounds_up && missing < window.strides[axis])) return Done{};
  return InvalidOp(
      spec, fmt::format("on spatial axis {} its window covers {} elements, more than the {} that "
                        "there are with {} of padding",
                        axis, window.extent(axis), window.in[axis],
                        window.begin[axis] + window.end[axis]));
}

Result<Done> CheckOutput(const OpSpec& spec, const Window& window, WindowKind kind, size_t axis) {
  const int64_t out = window.out[axis];
  const int64_t stride = window.strides[axis];
  if (IsSame(spec)) {
    const int64_t expected = (window.in[axis] - 1) / stride + 1;
    return out == expected ? Result<Done>(Done{}) : WrongOutput(spec, axis, out, expected);
  }
  const bool rounds_up = RoundsUp(spec, kind);
  int64_t expected = CountWindows(window, axis, rounds_up);
  if (rounds_up) {
    expected = WithoutWindowInPadding(expected, stride, window.in[axis], window.begin[axis]);
  }
  return out == expected ? Result<Done>(Done{}) : WrongOutput(spec, axis, out, expected);
}

// The output of a transposed convolution is `in`.
Result<Done> CheckTransposed(const OpSpec& spec, const Window& window, const Dims& extra,
                             size_t axis) {
  const int64_t given =
      (window.out[axis] - 1) * window.strides[axis] + extra[axis] + window.extent(axis);
  const bool has_shape = HasOutputShape(spec, WindowKind::kTransposed);
  const int64_t expected = has_shape      ? spec.Ints("output_shape")[axis]
                           : IsSame(spec) ? window.in[axis]
                                          : given - window.begin[axis] - window.end[axis];
  if (window.in[axis] != expected) return WrongOutput(spec, axis, window.in[axis], expected);
  if (CountWindows(window, axis, false) == window.out[axis]) return Done{};
  return UnsupportedOp(
      spec, fmt::format("on spatial axis {} its output of {} leaves room for another window", axis,
                        window.in[axis]));
}

Result<Done> CheckAxis(const OpSpec& spec, const Window& window, const Dims& extra, WindowKind kind,
                       size_t axis) {
  CKPLAN_RETURN_IF_ERROR(CheckFits(spec, window, axis, RoundsUp(spec, kind)));
  if (kind == WindowKind::kTransposed) return CheckTransposed(spec, window, extra, axis);
  return CheckOutput(spec, window, kind, axis);
}

Result<Done> CheckSizes(const OpSpec& spec, const Window& window) {
  for (const Dims* sizes : {&window.in, &window.out}) {
    for (const int64_t size : *sizes) {
      CKPLAN_RETURN_IF_ERROR(RequireLibrarySize(spec, "a spatial axis of it", size));
    }
  }
  return Done{};
}

// Reads strides, dilations and pads.
Result<Done> ReadSteps(const OpSpec& spec, Window& window) {
  const size_t rank = window.rank();
  CKPLAN_ASSIGN_OR_RETURN(window.strides, ReadEntries(spec, "strides", rank, 1, 1));
  CKPLAN_ASSIGN_OR_RETURN(window.dilations, ReadEntries(spec, "dilations", rank, 1, 1));
  CKPLAN_ASSIGN_OR_RETURN(const Dims pads, ReadEntries(spec, "pads", 2 * rank, 0, 0));
  const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(rank);
  window.begin.assign(pads.begin(), middle);
  window.end.assign(middle, pads.end());
  return Done{};
}

}  // namespace

std::array<WindowAxis, 3> ThreeAxes(const Window& window) {
  std::array<WindowAxis, 3> axes;
  const size_t skipped = axes.size() - window.rank();
  for (size_t i = 0; i < window.rank(); ++i) {
    axes[i + skipped] = {window.in[i],        window.out[i],   window.kernel[i], window.strides[i],
                         window.dilations[i], window.begin[i], window.end[i]};
  }
  return axes;
}

int64_t WithoutWindowInPadding(int64_t windows, int64_t stride, int64_t in, int64_t begin) {
  const auto origin = CheckedMul(windows - 1, stride);
  const auto end_of_input = CheckedAdd(in, begin);
  const bool is_in_padding = origin && end_of_input && *origin >= *end_of_input;
  return windows > 1 && is_in_padding ? windows - 1 : windows;
}

Result<Window> ReadWindow(const OpSpec& spec, const Operand& in, const Operand& out,
                          const Dims& kernel, WindowKind kind) {
  CKPLAN_RETURN_IF_ERROR(CheckRule(spec));
  Window window;
  window.in.assign(in.dims.begin() + 2, in.dims.end());
  window.out.assign(out.dims.begin() + 2, out.dims.end());
  CKPLAN_RETURN_IF_ERROR(CheckSizes(spec, window));
  const size_t rank = window.rank();
  CKPLAN_ASSIGN_OR_RETURN(window.kernel, ReadKernel(spec, rank, kernel));
  CKPLAN_RETURN_IF_ERROR(ReadSteps(spec, window));
  CKPLAN_ASSIGN_OR_RETURN(const Dims extra, ReadEntries(spec, "output_padding", rank, 0, 0));
  if (HasOutputShape(spec, kind)) {
    CKPLAN_RETURN_IF_ERROR(ReadEntries(spec, "output_shape", rank, 1, 1));
  }
  if (IsSame(spec)) {
    PadToFit(window, extra, spec.String("auto_pad", "") == "SAME_LOWER");
  } else if (HasOutputShape(spec, kind)) {
    PadToFit(window, extra, true);
  }
  for (size_t axis = 0; axis < rank; ++axis) {
    CKPLAN_RETURN_IF_ERROR(CheckAxis(spec, window, extra, kind, axis));
  }
  return window;
}

Result<Window> ReadWindowsOver(const OpSpec& spec, const Dims& in, const Dims& kernel,
                               std::string_view kernel_name) {
  Window window;
  window.in = in;
  window.kernel = kernel;
  CKPLAN_RETURN_IF_ERROR(CheckSizes(spec, window));
  CKPLAN_RETURN_IF_ERROR(CheckEntries(spec, kernel_name, kernel, window.rank(), 1));
  CKPLAN_RETURN_IF_ERROR(ReadSteps(spec, window));
  for (size_t axis = 0; axis < window.rank(); ++axis) {
    CKPLAN_RETURN_IF_ERROR(CheckFits(spec, window, axis, /*rounds_up=*/false));
    window.out.push_back(CountWindows(window, axis, false));
  }
  return window;
}

}  // namespace ckplan
