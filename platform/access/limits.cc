#include "access/limits.h"

#include <algorithm>
#include <vector>

namespace muster::access {

namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

/// Removes the quietest tenth at once, so that the cost of the search is spread over many
/// additions.
template <class Entries, class LastOf>
void forget_the_quietest(Entries& entries, LastOf last_of) {
  std::vector<base::Time> times;
  times.reserve(entries.size());
  for (const auto& [name, entry] : entries) times.push_back(last_of(entry));
  const auto tenth = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 10);
  std::nth_element(times.begin(), tenth, times.end());
  std::erase_if(entries, [&](const auto& item) { return last_of(item.second) <= *tenth; });
}

}  // namespace

std::optional<seconds> FailedLogins::wait(const std::string& address, base::Time now) {
  const auto found = entries_.find(address);
  if (found == entries_.end() || found->second.until <= now) return std::nullopt;
  base::Time& until = found->second.until;
  // If the clock was set back, the wait ends at the latest after the longest wait from now on.
  until = std::min(until, now + options_.longest);
  return std::chrono::ceil<seconds>(until - now);
}

void FailedLogins::failed(const std::string& address, base::Time now) {
  if (!entries_.contains(address)) make_room(now);
  Entry& entry = entries_[address];
  if (is_forgotten(entry, now)) entry = {};
  entry.last = now;
  ++entry.failures;
  const int beyond = entry.failures - options_.free_tries;
  if (beyond < 0) return;
  // 2^20 s exceeds every sensible limit, and the shift does not overflow.
  entry.until = now + std::min(seconds(int64_t{1} << std::min(beyond, 20)), options_.longest);
}

bool FailedLogins::is_forgotten(const Entry& entry, base::Time now) const {
  return std::max(entry.last, entry.until) + options_.window < now;
}

void FailedLogins::make_room(base::Time now) {
  if (entries_.size() < options_.most_addresses) return;
  std::erase_if(entries_, [&](const auto& item) { return is_forgotten(item.second, now); });
  if (entries_.size() < options_.most_addresses) return;
  forget_the_quietest(entries_, [](const Entry& entry) { return entry.last; });
}

std::optional<std::chrono::milliseconds> RequestRate::take(const std::string& caller,
                                                           base::Time now) {
  auto found = buckets_.find(caller);
  if (found == buckets_.end()) {
    make_room(now);
    found = buckets_.emplace(caller, Bucket{.left = burst_, .at = now}).first;
  }
  Bucket& bucket = found->second;
  bucket.left = filled(bucket, now);
  bucket.at = now;
  if (bucket.left >= 1) {
    bucket.left -= 1;
    return std::nullopt;
  }
  const std::chrono::duration<double> missing((1 - bucket.left) / rate_);
  return std::chrono::ceil<std::chrono::milliseconds>(missing);
}

double RequestRate::filled(const Bucket& bucket, base::Time now) const {
  const std::chrono::duration<double> passed = std::max(now - bucket.at, nanoseconds(0));
  return std::min(burst_, bucket.left + passed.count() * rate_);
}

void RequestRate::make_room(base::Time now) {
  if (buckets_.size() < kMostCallers) return;
  // A full bucket is the same as no bucket.
  std::erase_if(buckets_, [&](const auto& item) { return filled(item.second, now) >= burst_; });
  if (buckets_.size() < kMostCallers) return;
  forget_the_quietest(buckets_, [](const Bucket& bucket) { return bucket.at; });
}

}  // namespace muster::access
