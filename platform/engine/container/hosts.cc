#include "engine/container/hosts.h"

#include <optional>
#include <utility>

#include "base/log.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

constexpr int64_t kMegabyte = 1'000'000;

/// Whether two requests need the same image for the same user, so that it is prepared once.
bool is_same(const ImageRequest& one, const ImageRequest& other) {
  return one.node == other.node && one.image == other.image && one.user == other.user &&
         one.pull == other.pull && one.registry == other.registry &&
         one.username == other.username && one.password == other.password;
}

class Preparation : public std::enable_shared_from_this<Preparation> {
 public:
  Preparation(base::EventLoop& loop, std::vector<ImageRequest> requests,
              std::function<void(const job::Fact&)> progress, Engine::Prepared done)
      : loop_(loop),
        requests_(std::move(requests)),
        progress_(std::move(progress)),
        done_(std::move(done)),
        found_(requests_.size()) {}

  void begin(const Hosts& hosts) {
    for (size_t i = 0; i < requests_.size(); ++i) {
      if (first_like(i) == i) under_way_.push_back(ask(i, hosts.find(requests_[i].node)));
    }
    later([](Preparation& self) { self.check(); });
  }

 private:
  size_t first_like(size_t index) const {
    size_t first = 0;
    while (!is_same(requests_[first], requests_[index])) ++first;
    return first;
  }

  std::shared_ptr<void> ask(size_t index, HeldHost* host) {
    const ImageRequest& request = requests_[index];
    const auto info = host == nullptr ? std::nullopt : host->host.info();
    if (!info || !host->host.has_answered()) {
      failed(host == nullptr
                 ? Error{.code = ErrorCode::kNotFound, .what = "there is no host " + request.node}
                 : host->host.fault().value_or(
                       Error{.code = ErrorCode::kUnavailable,
                             .what = "host " + request.node + " does not answer"}));
      return nullptr;
    }
    const std::weak_ptr<Preparation> weak = weak_from_this();
    return host->images.prepare(
        request, info->architecture,
        [weak, index](const PullProgress& progress) {
          if (const auto self = weak.lock()) self->report_progress(index, progress);
        },
        [weak, index](Result<launch::ImageFacts> facts) {
          if (const auto self = weak.lock()) self->take_facts(index, std::move(facts));
        });
  }

  void report_progress(size_t index, const PullProgress& progress) {
    const ImageRequest& request = requests_[index];
    const job::FetchesImage fact = progress_fact(request.node, request.image, progress);
    if (progress_ && std::exchange(reported_, fact) != fact) progress_(fact);
  }

  void take_facts(size_t index, Result<launch::ImageFacts> facts) {
    if (!facts) return failed(std::move(facts).error());
    found_[index] = *std::move(facts);
    later([](Preparation& self) { self.check(); });
  }

  void failed(Error error) {
    if (!error_) error_ = std::move(error);
    later([](Preparation& self) { self.check(); });
  }

  void check() {
    if (done_ == nullptr) return;
    std::vector<launch::ImageFacts> facts;
    for (size_t i = 0; i < requests_.size() && !error_; ++i) {
      const auto& found = found_[first_like(i)];
      if (!found) return;
      facts.push_back(*found);
    }
    under_way_.clear();
    const auto done = std::exchange(done_, nullptr);
    error_ ? done(*error_) : done(std::move(facts));
  }

  /// Callbacks may drop this object, so they are called from the loop only.
  void later(std::function<void(Preparation&)> what) {
    loop_.post([weak = weak_from_this(), what = std::move(what)] {
      if (const auto self = weak.lock()) what(*self);
    });
  }

  base::EventLoop& loop_;
  std::vector<ImageRequest> requests_;
  std::function<void(const job::Fact&)> progress_;
  Engine::Prepared done_;
  std::vector<std::optional<launch::ImageFacts>> found_;
  std::optional<Error> error_;
  job::FetchesImage reported_;
  std::vector<std::shared_ptr<void>> under_way_;
};

}  // namespace

job::FetchesImage progress_fact(const std::string& node, const std::string& image,
                                const PullProgress& progress) {
  return {.node = node,
          .image = image,
          .done_megabytes = progress.done_bytes / kMegabyte,
          .all_megabytes = progress.all_bytes / kMegabyte};
}

Hosts::Hosts(base::EventLoop& loop, Handlers handlers)
    : loop_(loop), handlers_(std::move(handlers)), later_(loop) {}

Result<void> Hosts::connect(const ContainerEngineOptions& options) {
  for (const ContainerHostOptions& how : options.hosts) {
    if (hosts_.count(how.name) > 0) {
      return Error{.code = ErrorCode::kInvalid,
                   .what = "two hosts have the name '" + how.name + "'",
                   .advice = "give each its own name"};
    }
    connections_.push_back(std::make_unique<ContainerHost>(
        loop_, how, options.patience, [this] { changed(); }, options.pace, options.owner));
    hosts_[how.name] = std::make_unique<HeldHost>(loop_, *connections_.back(), how, options.owner);
  }
  auto met = meet(loop_, connections_, options.patience.meeting);
  if (!met && met.error().code == ErrorCode::kInvalid) return met;
  if (!met) base::log_warning(met.error().what + "; jobs wait until a host answers");
  for (const auto& [name, host] : hosts_) {
    host->is_there = host->host.has_answered();
    host->had_fault = host->host.fault().has_value();
  }
  return {};
}

void Hosts::close() {
  hosts_.clear();
  connections_.clear();
}

void Hosts::changed() {
  bool one_is_lost = false;
  for (const auto& [name, host] : hosts_) {
    const bool is_there = host->host.has_answered();
    const bool has_fault = host->host.fault().has_value();
    const bool has_recovered = std::exchange(host->had_fault, has_fault) && !has_fault;
    const bool was_there = std::exchange(host->is_there, is_there);
    if (is_there && !was_there) handlers_.on_present(*host);
    if (is_there && has_recovered) handlers_.on_recovered(*host);
    if (is_there || !was_there) continue;
    one_is_lost = true;
    later_([this, &lost = *host] { handlers_.on_absent(lost); });
  }
  if (!one_is_lost) return call_watchers();
  later_([this] { call_watchers(); });
}

void Hosts::call_watchers() {
  const auto all = watchers_;  // a callback may add or drop a watcher
  for (const auto& watcher : all) {
    if (const auto changed = watcher.lock()) (*changed)();
  }
  std::erase_if(watchers_, [](const auto& watcher) { return watcher.expired(); });
}

HeldHost* Hosts::find(const std::string& node) const {
  const auto found = hosts_.find(node);
  return found == hosts_.end() ? nullptr : found->second.get();
}

std::vector<Node> Hosts::nodes() const {
  std::vector<Node> nodes;
  for (const auto& [name, host] : hosts_) {
    if (auto node = host->host.node()) nodes.push_back(*std::move(node));
  }
  return nodes;
}

std::shared_ptr<void> Hosts::watch(std::function<void()> changed) {
  auto watcher = std::make_shared<std::function<void()>>(std::move(changed));
  watchers_.emplace_back(watcher);
  return watcher;
}

std::shared_ptr<void> Hosts::prepare(std::vector<ImageRequest> requests,
                                     std::function<void(const job::Fact&)> progress,
                                     Engine::Prepared done) const {
  const auto preparation = std::make_shared<Preparation>(loop_, std::move(requests),
                                                         std::move(progress), std::move(done));
  preparation->begin(*this);
  return preparation;
}

}  // namespace muster::engine
