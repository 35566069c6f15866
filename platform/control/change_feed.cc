#include "control/change_feed.h"

#include <algorithm>

#include "base/units.h"

namespace muster::control {

std::string to_string(const FeedPosition& position) {
  return std::to_string(position.epoch) + "." + std::to_string(position.number);
}

std::optional<FeedPosition> feed_position_of(std::string_view text) {
  const size_t dot = text.find('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const auto epoch = base::number_of<uint64_t>(text.substr(0, dot));
  const auto number = base::number_of<uint64_t>(text.substr(dot + 1));
  if (!epoch || !number) return std::nullopt;
  return FeedPosition{*epoch, *number};
}

uint64_t ChangeFeed::number_from(uint64_t hint) {
  const uint64_t number = std::max(next_, hint);
  next_ = number + 1;
  return number;
}

void ChangeFeed::changed(const std::string& id, uint64_t hint) {
  uint64_t& number = number_of_[id];
  if (number != 0) by_number_.erase(number);
  number = number_from(hint);
  by_number_.emplace_hint(by_number_.end(), number, id);
}

void ChangeFeed::removed(const std::string& id, const std::string& name, const std::string& project,
                         uint64_t hint) {
  if (const auto found = number_of_.find(id); found != number_of_.end()) {
    by_number_.erase(found->second);
    number_of_.erase(found);
  }
  removed_.push_back(
      {.number = number_from(hint), .job = id, .name = name, .project = project, .removed = true});
  if (removed_.size() <= kMostRemoved) return;
  forgotten_before_ = removed_.front().number;
  removed_.pop_front();
}

std::optional<std::vector<ChangeFeed::Change>> ChangeFeed::after(const FeedPosition& since,
                                                                 size_t most) const {
  const bool known = since.epoch == epoch_ && since.number < next_;
  if (!known || since.number < forgotten_before_) return std::nullopt;
  auto change = by_number_.upper_bound(since.number);
  auto removal = std::upper_bound(
      removed_.begin(), removed_.end(), since.number,
      [](uint64_t number, const Change& removed) { return number < removed.number; });
  std::vector<Change> changes;
  while (changes.size() < most) {
    const bool more_changes = change != by_number_.end();
    const bool more_removals = removal != removed_.end();
    if (!more_changes && !more_removals) break;
    if (more_changes && (!more_removals || change->first < removal->number)) {
      changes.push_back(
          {.number = change->first, .job = change->second, .name = {}, .project = {}});
      ++change;
    } else {
      changes.push_back(*removal++);
    }
  }
  return changes;
}

std::shared_ptr<void> ChangeFeed::watch(std::function<void()> changed) {
  auto watcher = std::make_shared<std::function<void()>>(std::move(changed));
  watchers_.push_back(watcher);
  return watcher;
}

// Whoever is called may drop other watchers, or add some: those are called the next time.
void ChangeFeed::tell() {
  std::erase_if(watchers_, [](const auto& watcher) { return watcher.expired(); });
  const auto watchers = watchers_;
  for (const auto& weak : watchers) {
    if (const auto watcher = weak.lock()) (*watcher)();
  }
}

}  // namespace muster::control
