// Finds the files beside a model that hold its weights.
#pragma once

#include <string>
#include <vector>

namespace ckplan {

// Returns the paths of all files that the model's tensors refer to, sorted, each once, whether they
// exist or not. Returns none if the model cannot be read. Only the fields of the file are read, not
// their contents.
std::vector<std::string> ExternalFiles(const std::string& model_path);

}  // namespace ckplan
