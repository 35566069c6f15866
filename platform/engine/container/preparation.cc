#include "engine/container/preparation.h"

#include <optional>
#include <utility>

namespace muster::engine {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

constexpr int64_t kMegabyte = 1'000'000;

/// One that is done for several tasks.
bool is_same(const ImageWish& one, const ImageWish& other) {
  return one.node == other.node && one.image == other.image && one.user == other.user &&
         one.pull == other.pull && one.registry == other.registry &&
         one.username == other.username && one.password == other.password;
}

class Preparation : public std::enable_shared_from_this<Preparation> {
 public:
  Preparation(base::EventLoop& loop, std::vector<ImageWish> wishes,
              std::function<void(const job::FetchesImage&)> progress, Engine::Prepared done)
      : loop_(loop),
        wishes_(std::move(wishes)),
        progress_(std::move(progress)),
        done_(std::move(done)),
        found_(wishes_.size()) {}

  void begin(const std::function<HeldHost*(const std::string& node)>& host_of) {
    for (size_t i = 0; i < wishes_.size(); ++i) {
      if (first_like(i) == i) under_way_.push_back(ask(i, host_of(wishes_[i].node)));
    }
    later([](Preparation& self) { self.check(); });
  }

 private:
  size_t first_like(size_t wish) const {
    size_t first = 0;
    while (!is_same(wishes_[first], wishes_[wish])) ++first;
    return first;
  }

  std::shared_ptr<void> ask(size_t wish, HeldHost* host) {
    const ImageWish& wanted = wishes_[wish];
    const auto info = host == nullptr ? std::nullopt : host->host.info();
    if (!info || !host->host.node()) {
      failed(host == nullptr
                 ? Error{.code = ErrorCode::kNotFound, .what = "there is no host " + wanted.node}
                 : host->host.fault().value_or(
                       Error{.code = ErrorCode::kUnavailable,
                             .what = "host " + wanted.node + " does not answer"}));
      return nullptr;
    }
    const std::weak_ptr<Preparation> weak = weak_from_this();
    return host->images.prepare(
        wanted, info->architecture,
        [weak, wish](const PullProgress& progress) {
          if (const auto self = weak.lock()) self->tell(wish, progress);
        },
        [weak, wish](Result<launch::ImageFacts> facts) {
          if (const auto self = weak.lock()) self->take(wish, std::move(facts));
        });
  }

  void tell(size_t wish, const PullProgress& progress) {
    const ImageWish& wanted = wishes_[wish];
    const job::FetchesImage fact = progress_fact(wanted.node, wanted.image, progress);
    if (progress_ && std::exchange(told_, fact) != fact) progress_(fact);
  }

  void take(size_t wish, Result<launch::ImageFacts> facts) {
    if (!facts) return failed(std::move(facts).error());
    found_[wish] = *std::move(facts);
    later([](Preparation& self) { self.check(); });
  }

  void failed(Error error) {
    if (!error_) error_ = std::move(error);
    later([](Preparation& self) { self.check(); });
  }

  void check() {
    if (done_ == nullptr) return;
    std::vector<launch::ImageFacts> facts;
    for (size_t i = 0; i < wishes_.size() && !error_; ++i) {
      const auto& found = found_[first_like(i)];
      if (!found) return;
      facts.push_back(*found);
    }
    under_way_.clear();
    const auto done = std::exchange(done_, nullptr);
    error_ ? done(*error_) : done(std::move(facts));
  }

  /// Whoever is called back may drop this: never in the midst of its own doings.
  void later(std::function<void(Preparation&)> what) {
    loop_.post([weak = weak_from_this(), what = std::move(what)] {
      if (const auto self = weak.lock()) what(*self);
    });
  }

  base::EventLoop& loop_;
  std::vector<ImageWish> wishes_;
  std::function<void(const job::FetchesImage&)> progress_;
  Engine::Prepared done_;
  std::vector<std::optional<launch::ImageFacts>> found_;
  std::optional<Error> error_;
  job::FetchesImage told_;
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

std::shared_ptr<void> prepare_images(
    base::EventLoop& loop, const std::function<HeldHost*(const std::string& node)>& host_of,
    std::vector<ImageWish> wishes, std::function<void(const job::FetchesImage&)> progress,
    Engine::Prepared done) {
  const auto preparation =
      std::make_shared<Preparation>(loop, std::move(wishes), std::move(progress), std::move(done));
  preparation->begin(host_of);
  return preparation;
}

}  // namespace muster::engine
