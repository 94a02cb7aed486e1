// The files beside a model that hold its weights.
#pragma once

#include <string>
#include <vector>

namespace ckplan {

// The paths of all files that tensors of the model refer to, sorted, each once, whether they exist
// or not. Empty if the model cannot be read. Cost: that of reading the fields of the file, not
// their contents.
std::vector<std::string> ExternalFiles(const std::string& model_path);

}  // namespace ckplan
