#include "lib/ops/pool_shape.h"

#include <limits>

#include "lib/ops/window.h"

namespace ckplan {

bool PoolShape::is_one_window() const {
  return std::all_of(axes.begin(), axes.end(), [](const PoolAxis& axis) {
    return axis.out == 1 && axis.last(0) - axis.first(0) == axis.in;
  });
}

Result<PoolShape> ReadPoolShape(const OpSpec& spec, bool is_global) {
  const Operand& x = spec.input(0);
  if (!is_global && (x.dims.size() < 3 || x.dims.size() > 5)) {
    return UnsupportedOp(spec, "only 1 to 3 spatial axes are");
  }
  PoolShape shape;
  shape.planes = x.dims[0] * x.dims[1];
  if (is_global) {
    shape.axes[2].in = shape.axes[2].kernel = x.elements() / std::max<int64_t>(1, shape.planes);
  } else {
    const Window window = ReadWindow(spec, x, spec.output(0), {});
    const size_t skipped = 3 - window.rank();
    for (size_t i = 0; i < window.rank(); ++i) {
      shape.axes[i + skipped] = {window.in[i],      window.out[i],       window.kernel[i],
                                 window.strides[i], window.dilations[i], window.begin[i],
                                 window.end[i]};
    }
  }
  if (shape.in() > std::numeric_limits<int32_t>::max()) {
    return UnsupportedOp(spec, "an image of it has more than 2^31 elements");
  }
  return shape;
}

}  // namespace ckplan
