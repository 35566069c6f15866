#include "engine/container/removals.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/log.h"

namespace muster::engine {

namespace {

using base::ErrorCode;
using base::Result;

/// The pause before a removal is repeated; it doubles each time.
constexpr std::chrono::milliseconds kFirstRetryPause{250};
constexpr std::chrono::milliseconds kLongestRetryPause{60'000};

std::string kind_name(Removals::Kind kind) {
  switch (kind) {
    case Removals::Kind::kContainer:
      return "container";
    case Removals::Kind::kNetwork:
      return "network";
    case Removals::Kind::kVolume:
      break;
  }
  return "volume";
}

void remove_from(DockerClient& client, Removals::Kind kind, const std::string& name,
                 DockerClient::Done done) {
  switch (kind) {
    case Removals::Kind::kContainer:
      return client.remove(name, std::move(done));
    case Removals::Kind::kNetwork:
      return client.remove_network(name, std::move(done));
    case Removals::Kind::kVolume:
      return client.remove_volume(name, std::move(done));
  }
}

}  // namespace

struct Removals::State : std::enable_shared_from_this<State> {
  explicit State(base::EventLoop& its_loop) : loop(its_loop) {}

  void attempt(const Item& item, std::function<void()> tried) {
    const auto& [host, kind, name] = item;
    under_way.insert(item);
    remove_from(host->client(), kind, name,
                [weak = weak_from_this(), item, tried = std::move(tried)](Result<void> removed) {
                  if (const auto self = weak.lock()) self->attempted(item, removed);
                  if (tried) tried();
                });
  }

  void cancel(const Item& item, std::function<void()> ended) {
    left.erase(item);
    failures.erase(item);
    if (!under_way.contains(item)) return ended();
    cancelled[item].push_back(std::move(ended));
  }

  void attempted(const Item& item, const Result<void>& removed) {
    under_way.erase(under_way.find(item));
    if (const auto found = cancelled.find(item); found != cancelled.end()) {
      if (under_way.contains(item)) return;
      const auto all = cancelled.extract(found);
      for (const auto& ended : all.mapped()) ended();
      return;
    }
    if (removed || removed.error().code == ErrorCode::kNotFound) {
      failures.erase(item);
      if (failures.empty()) pause = kFirstRetryPause;
      return;
    }
    left.insert(item);
    // The first failure is not logged: often the container has not ended completely yet.
    if (++failures[item] == 2) {
      base::log_error(kind_name(std::get<Kind>(item)) + " " + std::get<std::string>(item) +
                      " cannot be removed, and is tried again: " + removed.error().what);
    }
    if (!timer) timer = loop.after(pause, [this] { try_again(); });
  }

  void try_again() {
    timer.reset();
    pause = std::min(pause * 2, kLongestRetryPause);
    for (const Item& item : std::exchange(left, {})) attempt(item, {});
  }

  base::EventLoop& loop;
  std::multiset<Item> under_way;
  /// Removals under way that are not to be tried again, and whom to call at their end.
  std::map<Item, std::vector<std::function<void()>>> cancelled;
  std::set<Item> left;  ///< to be tried again
  std::map<Item, int> failures;
  std::chrono::milliseconds pause = kFirstRetryPause;
  base::EventLoop::Interest timer;
};

Removals::Removals(base::EventLoop& loop) : state_(std::make_shared<State>(loop)) {}

void Removals::add(HeldHost& host, Kind kind, const std::string& name,
                   std::function<void()> tried) {
  state_->attempt({&host, kind, name}, std::move(tried));
}

void Removals::cancel(HeldHost& host, Kind kind, const std::string& name,
                      std::function<void()> ended) {
  state_->cancel({&host, kind, name}, std::move(ended));
}

bool Removals::is_done() const {
  return state_->under_way.empty() && state_->left.empty();
}

}  // namespace muster::engine
