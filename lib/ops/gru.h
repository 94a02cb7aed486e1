// The shape of GRU.
#pragma once

#include "lib/base/result.h"
#include "lib/ops/families.h"
#include "lib/ops/op_spec.h"
#include "lib/ops/recurrent.h"

namespace ckplan {

struct GruShape : RecurrentShape {
  bool resets_after = false;  // The reset gate is multiplied after the recurrent product.
};

Result<GruShape> ReadGruShape(const OpSpec& spec);

}  // namespace ckplan
