// The shape of GRU.
#pragma once

#include "lib/base/result.h"
#include "lib/problem/ops/families.h"
#include "lib/problem/ops/op_spec.h"
#include "lib/problem/ops/recurrent.h"

namespace ckplan {

struct GruShape : RecurrentShape {
  bool resets_after = false;  // The reset gate is multiplied after the recurrent product.
};

Result<GruShape> ReadGruShape(const OpSpec& spec);

}  // namespace ckplan
