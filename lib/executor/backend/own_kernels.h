// Says why an operator that a vendor's library could compute runs by kernels of the backend's own.
#pragma once

#include <string>

namespace ckplan {

// A PreparedOp for which a library was asked is one of these, too.
class MayHaveOwnKernels {
 public:
  virtual ~MayHaveOwnKernels() = default;
  // One clause without a full stop: "its heads have 6 elements, no multiple of 8". Empty if the
  // library computes the operator.
  virtual std::string WhyOwnKernels() const = 0;
};

}  // namespace ckplan
