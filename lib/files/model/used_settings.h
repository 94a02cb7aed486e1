// Settings of a file that serves several models (ckplan.toml): a model ignores what it lacks.
//
// LoadOptions::optional_dims has the names of such settings: "N" for a dimension, "mask=" for an
// input that is set, "acme::Norm=" for an operator that is described. A plan stores only those that
// its model has.
#pragma once

#include <string>
#include <vector>

#include "lib/files/model/model.h"

namespace ckplan {

// Returns the texts whose input, or operator, the model's file has.
std::vector<std::string> UsedSetInputs(const Model& model, const std::vector<std::string>& texts);
std::vector<std::string> UsedOpShapes(const Model& model, const std::vector<std::string>& texts);

}  // namespace ckplan
