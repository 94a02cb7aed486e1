#include "lib/base/temporary_name.h"

#include <unistd.h>

#include <atomic>
#include <utility>

namespace ckplan {

// Entries are never freed, since a signal handler may read them while others are added. A program
// writes few files.
struct TemporaryName::Entry {
  const std::string path;
  std::atomic<bool> is_to_vanish = true;
  Entry* next = nullptr;
};

namespace {

std::atomic<void*> latest_entry = nullptr;
static_assert(std::atomic<void*>::is_always_lock_free, "a signal handler may read it");

}  // namespace

TemporaryName::TemporaryName(std::string path) : entry_(new Entry{std::move(path)}) {
  void* before = latest_entry;
  do {
    entry_->next = static_cast<Entry*>(before);
  } while (!latest_entry.compare_exchange_weak(before, entry_));
}

TemporaryName::~TemporaryName() {
  if (entry_->is_to_vanish) unlink(entry_->path.c_str());
  Keep();
}

const std::string& TemporaryName::path() const { return entry_->path; }

void TemporaryName::Keep() { entry_->is_to_vanish = false; }

void TemporaryName::RemoveAll() {
  for (auto* entry = static_cast<Entry*>(latest_entry.load()); entry != nullptr;
       entry = entry->next) {
    if (entry->is_to_vanish) unlink(entry->path.c_str());
  }
}

}  // namespace ckplan
