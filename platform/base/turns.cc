#include "base/turns.h"

#include <utility>

namespace muster::base {

void Turns::add(const std::string& party, Piece piece) {
  std::deque<Piece>& waiting = pieces_[party];
  if (waiting.empty()) order_.push_back(party);
  waiting.push_back(std::move(piece));
  begin_next();
}

size_t Turns::waiting(const std::string& party) const {
  const auto found = pieces_.find(party);
  return found == pieces_.end() ? 0 : found->second.size();
}

/// A piece may be finished, or add others, while it begins: the outermost call begins the next one.
void Turns::begin_next() {
  if (std::exchange(is_beginning_, true)) return;
  const std::weak_ptr<bool> alive = alive_;
  while (!is_busy_ && !order_.empty()) {
    const std::string party = std::move(order_.front());
    order_.pop_front();
    const auto waiting = pieces_.find(party);
    const Piece piece = std::move(waiting->second.front());
    waiting->second.pop_front();
    if (waiting->second.empty()) {
      pieces_.erase(waiting);
    } else {
      order_.push_back(party);
    }
    is_busy_ = true;
    piece([this, alive] {
      if (alive.expired()) return;
      is_busy_ = false;
      begin_next();
    });
    if (alive.expired()) return;
  }
  is_beginning_ = false;
}

}  // namespace muster::base
