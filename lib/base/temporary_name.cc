#include "lib/base/temporary_name.h"

#include <unistd.h>

#include <utility>

namespace ckplan {

TemporaryName* TemporaryName::latest_ = nullptr;

TemporaryName::TemporaryName(std::string path)
    : path_(std::move(path)), next_(std::exchange(latest_, this)) {}

TemporaryName::~TemporaryName() {
  if (!path_.empty()) unlink(path_.c_str());
  TemporaryName** link = &latest_;
  while (*link != this) link = &(*link)->next_;
  *link = next_;
}

void TemporaryName::Keep() { path_.clear(); }

void TemporaryName::RemoveAll() {
  for (const TemporaryName* name = latest_; name != nullptr; name = name->next_) {
    if (!name->path_.empty()) unlink(name->path_.c_str());
  }
}

}  // namespace ckplan
