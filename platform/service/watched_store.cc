#include "service/watched_store.h"

#include <utility>

namespace muster::service {

using base::Result;

WatchedStore::WatchedStore(store::Store& store, store::Leadership* leadership, std::string address,
                           std::function<void()> lost)
    : store_(store),
      leadership_(leadership),
      address_(std::move(address)),
      lost_(std::move(lost)) {}

Result<void> WatchedStore::commit(const store::Batch& batch) {
  Result<void> committed = store_.commit(batch);
  const bool refused = !committed && committed.error().code == base::ErrorCode::kRefused;
  if (!refused || leadership_ == nullptr) return committed;
  // Refused while this server leads: the database is read-only, and may be so for a while only.
  // Refused and nobody leads: another did in between.
  const auto leader = leadership_->leader();
  if (leader && *leader != address_) tell_lost();
  return committed;
}

void WatchedStore::look() {
  if (leadership_ == nullptr) return;
  const auto leader = leadership_->leader();
  // Nobody: this server's connection was lost, and the next commit takes the lead again if it can.
  if (leader && *leader && **leader != address_) tell_lost();
}

void WatchedStore::tell_lost() {
  if (const auto lost = std::exchange(lost_, nullptr)) lost();
}

}  // namespace muster::service
