#include "session/stragglers.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

namespace muster::collective::session {
namespace {

using Seconds = std::chrono::duration<double>;

// A task of Muster may send a hundred reports a second.
constexpr std::size_t kMostReports = 64;

double ratio(std::chrono::nanoseconds part, std::chrono::nanoseconds whole) {
  return whole > std::chrono::nanoseconds::zero() ? Seconds(part) / Seconds(whole) : 0;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

template <typename... Values>
std::string formatted(const char* format, Values... values) {
  char text[160];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

// The speeds of the links that `slow` is compared with. They carried as much, and do not touch the
// sender of `slow`: a port that is slow in one direction delays the acknowledgements of the other.
// If every link touches the sender, the links that do not touch the receiver.
std::vector<double> to_compare_with(const LinkSpeed& slow, const std::vector<LinkSpeed>& links) {
  const auto speeds_without = [&](auto touches) {
    std::vector<double> speeds;
    for (const LinkSpeed& link : links) {
      const bool is_comparable =
          static_cast<double>(link.bytes) >= kComparable * static_cast<double>(slow.bytes);
      if (is_comparable && !touches(link)) speeds.push_back(link.bytes_per_second);
    }
    return speeds;
  };
  const auto has = [](const LinkSpeed& link, int rank) {
    return link.from == rank || link.to == rank;
  };
  auto speeds = speeds_without([&](const LinkSpeed& link) { return has(link, slow.from); });
  if (speeds.empty()) {
    speeds = speeds_without([&](const LinkSpeed& link) { return has(link, slow.to); });
  }
  // Two ranks: the other direction.
  if (speeds.empty()) {
    speeds = speeds_without([&](const LinkSpeed& link) { return link.from == slow.from; });
  }
  return speeds;
}

std::string percent(double share) {
  return formatted("%.0f %%", share * 100);
}

std::string speed(double bytes_per_second) {
  const double megabytes = bytes_per_second / 1e6;
  return formatted(megabytes < 10 ? "%.1f MB/s" : "%.0f MB/s", megabytes);
}

}  // namespace

Stragglers::Stragglers(int size, std::chrono::milliseconds window)
    : window_(window), waits_(static_cast<std::size_t>(size)) {}

void Stragglers::completed(int last, Deadline before, Deadline now) {
  if (!begun_) begun_ = now;
  ++operations_;
  Waits& waits = waits_[static_cast<std::size_t>(last)];
  ++waits.operations;
  waits.sum += now - before;
  waits.alone += now - std::min(now, std::max({before, waits.counted_until, *begun_}));
  waits.counted_until = std::max(waits.counted_until, now);
}

void Stragglers::take(int from, const LinkReport& report) {
  for (const LinkUse& link : report.links) {
    if (link.to < 0 || static_cast<std::size_t>(link.to) >= waits_.size()) continue;
    Use& use = uses_[{from, link.to}];
    use.bytes += link.bytes;
    use.busy += link.busy;
    use.reported += report.window;
  }
}

std::optional<Slowness> Stragglers::judge(Deadline now) {
  if (!begun_ || window_ <= std::chrono::milliseconds::zero() || now < *begun_ + window_) {
    return std::nullopt;
  }
  Slowness slowness{.window = now - *begun_, .operations = operations_};
  judge_ranks(slowness);
  judge_links(slowness);
  if (slowness.slow_link) slowness.slow_rank.reset();
  const auto rank = slowness.slow_rank ? std::optional(slowness.slow_rank->rank) : std::nullopt;
  const auto link = slowness.slow_link
                        ? std::optional(std::pair(slowness.slow_link->from, slowness.slow_link->to))
                        : std::nullopt;
  slowness.slow_rank_is_new = rank != std::exchange(slow_rank_, rank);
  slowness.slow_link_is_new = link != std::exchange(slow_link_, link);
  begun_ = now;
  operations_ = 0;
  for (Waits& waits : waits_) waits = {.counted_until = waits.counted_until};
  uses_.clear();
  return slowness;
}

void Stragglers::judge_ranks(Slowness& slowness) const {
  std::chrono::nanoseconds all{0};
  for (const Waits& waits : waits_) all += waits.alone;
  for (std::size_t rank = 0; rank < waits_.size(); ++rank) {
    const Waits& waits = waits_[rank];
    if (waits.operations == 0) continue;
    const RankDelay delay{.rank = static_cast<int>(rank),
                          .share = ratio(waits.alone, slowness.window),
                          .operations = waits.operations,
                          .mean = waits.sum / static_cast<std::int64_t>(waits.operations)};
    slowness.ranks.push_back(delay);
    if (slowness.operations >= kFewestOperations && delay.share >= kSlowShare &&
        ratio(waits.alone, all) >= kMostly && delay.mean >= kNoticeable) {
      slowness.slow_rank = delay;
    }
  }
}

void Stragglers::judge_links(Slowness& slowness) const {
  for (const auto& [ends, use] : uses_) {
    if (use.bytes < kFewestBytes || use.busy <= std::chrono::microseconds::zero()) continue;
    slowness.links.push_back(
        {.from = ends.first,
         .to = ends.second,
         .bytes = use.bytes,
         .share = ratio(use.busy, use.reported),
         .bytes_per_second = static_cast<double>(use.bytes) / Seconds(use.busy).count()});
  }
  if (slowness.links.empty()) return;
  const LinkSpeed& slowest =
      *std::ranges::min_element(slowness.links, {}, &LinkSpeed::bytes_per_second);
  const std::vector<double> others = to_compare_with(slowest, slowness.links);
  if (others.empty() || slowest.share < kMostlyBusy) return;
  slowness.usual_bytes_per_second = median(others);
  if (slowest.bytes_per_second < kSlowSpeed * slowness.usual_bytes_per_second) {
    slowness.slow_link = slowest;
  }
}

std::vector<Finding> findings(const Slowness& slowness, const std::vector<std::string>& hosts) {
  const auto name_of = [&](int rank) {
    return "rank " + std::to_string(rank) + " on host " + hosts[static_cast<std::size_t>(rank)];
  };
  const std::string window = in_seconds(std::chrono::round<std::chrono::seconds>(slowness.window));
  std::vector<Finding> found;
  if (const auto& slow = slowness.slow_rank) {
    found.push_back({"SLOW_RANK", slowness.slow_rank_is_new,
                     name_of(slow->rank) + " is slow: the other ranks waited for it in " +
                         percent(slow->share) + " of the last " + window +
                         "; it was the last rank of " + std::to_string(slow->operations) + " of " +
                         std::to_string(slowness.operations) + " operations, " +
                         formatted("%.0f ms", Seconds(slow->mean).count() * 1000) +
                         " after the others on average"});
  }
  if (const auto& slow = slowness.slow_link) {
    found.push_back({"SLOW_LINK", slowness.slow_link_is_new,
                     "the link from " + name_of(slow->from) + " to " + name_of(slow->to) +
                         " is slow: " + speed(slow->bytes_per_second) + " in the last " + window +
                         ", while other links reach " + speed(slowness.usual_bytes_per_second) +
                         "; it was busy for " + percent(slow->share) + " of the time"});
  }
  return found;
}

std::vector<std::string> metrics(const Slowness& slowness) {
  std::vector<std::string> texts;
  std::vector<RankDelay> ranks = slowness.ranks;
  std::ranges::sort(ranks, std::greater<>(), &RankDelay::share);
  if (ranks.size() > kMostReports / 2) ranks.resize(kMostReports / 2);
  for (const RankDelay& delay : ranks) {
    texts.push_back(formatted("rank=%d waited_for_percent=%.1f", delay.rank,
                              std::round(delay.share * 1000) / 10));
  }
  std::vector<LinkSpeed> links = slowness.links;
  std::ranges::sort(links, {}, &LinkSpeed::bytes_per_second);
  std::vector<int> senders;
  for (const LinkSpeed& link : links) {
    if (texts.size() >= kMostReports) break;
    if (std::ranges::find(senders, link.from) != senders.end()) continue;
    senders.push_back(link.from);
    texts.push_back(formatted("rank=%d slowest_link_to_rank=%d slowest_link_bytes_per_second=%.0f",
                              link.from, link.to, link.bytes_per_second));
  }
  return texts;
}

}  // namespace muster::collective::session
