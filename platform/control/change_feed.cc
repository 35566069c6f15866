#include "control/change_feed.h"

#include <algorithm>
#include <cstring>

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
                         base::Time submitted, uint64_t hint) {
  if (const auto found = number_of_.find(id); found != number_of_.end()) {
    by_number_.erase(found->second);
    number_of_.erase(found);
  }
  removed_.push_back({.number = number_from(hint),
                      .job = id,
                      .removed = true,
                      .name = name,
                      .project = project,
                      .submitted = submitted});
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

// A callback may drop or add watchers; added watchers are called the next time.
void ChangeFeed::call_watchers() {
  std::erase_if(watchers_, [](const auto& watcher) { return watcher.expired(); });
  const auto watchers = watchers_;
  for (const auto& weak : watchers) {
    if (const auto watcher = weak.lock()) (*watcher)();
  }
}

// --- watchers

namespace {

uint64_t epoch_from(base::RandomSource& random) {
  const auto bytes = random.bytes<sizeof(uint64_t)>();
  uint64_t epoch = 0;
  std::memcpy(&epoch, bytes.data(), sizeof epoch);
  return epoch;
}

}  // namespace

JobWatchers::JobWatchers(const base::Clock& clock, base::RandomSource& random, Journal& journal)
    : clock_(clock), journal_(journal), feed_(epoch_from(random)) {}

void JobWatchers::announce(const std::string& id) {
  const bool is_planned = !to_announce_.empty();
  to_announce_.insert(id);
  if (!is_planned) journal_.then([this] { announce_now(); });
}

void JobWatchers::announce_now() {
  const std::set<std::string> ids = std::exchange(to_announce_, {});
  for (const std::string& id : ids) feed_.changed(id, hint());
  for (const std::string& id : ids) call(id);
  feed_.call_watchers();
}

void JobWatchers::removed(const std::string& id, const std::string& name,
                          const std::string& project, base::Time submitted) {
  to_announce_.erase(id);
  feed_.removed(id, name, project, submitted, hint());
  call(id);
}

uint64_t JobWatchers::hint() const {
  return static_cast<uint64_t>(clock_.now().time_since_epoch().count());
}

std::shared_ptr<void> JobWatchers::watch(const std::string& id, std::function<void()> changed) {
  auto callback = std::make_shared<std::function<void()>>(std::move(changed));
  std::erase_if(watchers_, [](const auto& watcher) { return watcher.second.expired(); });
  watchers_.emplace(id, callback);
  return callback;
}

bool JobWatchers::is_watched(const std::string& id) const {
  const auto [first, behind] = watchers_.equal_range(id);
  return std::any_of(first, behind, [](const auto& watcher) { return !watcher.second.expired(); });
}

void JobWatchers::call(const std::string& id) const {
  std::vector<std::shared_ptr<std::function<void()>>> callbacks;
  for (auto [at, end] = watchers_.equal_range(id); at != end; ++at) {
    if (auto callback = at->second.lock()) callbacks.push_back(std::move(callback));
  }
  for (const auto& callback : callbacks) (*callback)();
}

}  // namespace muster::control
