#include "lib/model/freeze.h"

#include <utility>
#include <vector>

#include "lib/model/facts.h"

namespace ckplan {

Result<Done> FreezeParameters(Model::Impl& model, const NamePatterns& patterns) {
  if (patterns.empty()) return Done{};
  const std::vector<ValueIndex> trained = FindFacts(model).trained;
  std::vector<NamedThing> things;
  for (const ValueIndex value : trained) things.push_back({{model.value(value).name}, ""});
  Result<std::vector<bool>> chosen = ChooseByName(patterns, things, "trained parameter");
  if (!chosen.ok()) {
    Error error = std::move(chosen).error();
    error.message.insert(0, model.identity.name + ": ");
    return error;
  }
  for (size_t i = 0; i < trained.size(); ++i) model.value(trained[i]).is_frozen = (*chosen)[i];
  return Done{};
}

}  // namespace ckplan
