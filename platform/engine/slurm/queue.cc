#include "engine/slurm/queue.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "engine/engine.h"
#include "engine/slurm/slurm_words.h"

namespace muster::engine::slurm {

using base::ErrorCode;

namespace {

/// How long more changes are likely after one.
constexpr std::chrono::seconds kUnrest{30};
/// Quick polls after an event that Slurm is about to list. So that many gangs together do not poll
/// without end, each quick poll becomes available again only after kNextHurry.
constexpr int kHurries = 8;
constexpr std::chrono::milliseconds kHurry{400};
constexpr std::chrono::seconds kNextHurry{10};

}  // namespace

void SlurmQueue::begin(Handlers handlers) {
  handlers_ = std::move(handlers);
  has_begun_ = true;
  changed();
}

void SlurmQueue::changed() {
  last_change_ = Steady::now();
  schedule();
}

void SlurmQueue::poll_soon() {
  changed();
  hurry_ = kHurries;
  if (is_polling_) {
    polls_again_ = true;
    return;
  }
  schedule();
}

/// The quick polls that are available.
int SlurmQueue::hurries_left() {
  const auto now = Steady::now();
  hurries_from_ = std::max(hurries_from_, now - kHurries * kNextHurry);
  return static_cast<int>((now - hurries_from_) / kNextHurry);
}

void SlurmQueue::schedule() {
  if (is_polling_ || !has_begun_) return;
  if (!handlers_.has_gangs() && to_cancel_.empty() && has_listed_) return poll_timer_.reset();
  const bool restless = Steady::now() - last_change_ < kUnrest;
  std::chrono::milliseconds pause = restless ? options_.quick_poll : options_.slow_poll;
  const bool hurries = hurry_ > 0 && hurries_left() > 0 && !away_since_ && pause > kHurry;
  if (hurries) pause = kHurry;
  if (polls_ == 0) pause = std::chrono::milliseconds(0);
  const auto due = Steady::now() + pause;
  if (poll_timer_ && poll_due_ <= due) return;
  is_hurrying_ = hurries;
  poll_due_ = due;
  poll_timer_ = loop_.after(pause, [this] { poll(); });
}

void SlurmQueue::poll() {
  if (is_polling_) return;
  poll_timer_.reset();
  is_polling_ = true;
  polls_again_ = false;
  if (hurry_ > 0) --hurry_;
  if (is_hurrying_) hurries_from_ += kNextHurry;
  client_.jobs([this, number = ++polls_](const Result<std::vector<ListedJob>>& jobs) {
    is_polling_ = false;
    if (!jobs) {
      controller_away(jobs.error());
      return schedule();
    }
    controller_back();
    has_listed_ = true;
    handlers_.on_jobs(number, *jobs);
    send_cancels();
    if (std::exchange(polls_again_, false)) hurry_ = std::max(hurry_, 1);
    schedule();
  });
}

// --- cancelling

void SlurmQueue::cancel(uint64_t job) {
  to_cancel_.insert(job);
  reports_.post([this] { send_cancels(); });
}

void SlurmQueue::send_cancels() {
  if (is_cancelling_ || to_cancel_.empty() || away_since_) return schedule();
  is_cancelling_ = true;
  const std::set<uint64_t> ids = std::exchange(to_cancel_, {});
  client_.cancel({ids.begin(), ids.end()}, [this, ids](const Result<void>& cancelled) {
    is_cancelling_ = false;
    changed();
    if (!cancelled) {
      base::log_warning("Slurm does not cancel jobs: " + cancelled.error().what);
      to_cancel_.insert(ids.begin(), ids.end());  // after the next listing
      return schedule();
    }
    handlers_.on_cancelled(ids);
    if (!to_cancel_.empty()) reports_.post([this] { send_cancels(); });
    schedule();
  });
}

// --- a controller that does not answer

void SlurmQueue::controller_away(const base::Error& error) {
  if (!away_since_) {
    away_since_ = base::SystemClock().now();
    ++outages_;
    base::log_warning("Slurm's controller does not answer: " + error.what);
  }
  away_why_ = error.what;
  if (handlers_.on_away) handlers_.on_away();
}

void SlurmQueue::controller_back() {
  if (!away_since_) return;
  base::log_info("Slurm's controller answers again");
  away_since_.reset();
  changed();
  handlers_.on_back();
}

// --- nodes

namespace {

constexpr int64_t kMilliPerCpu = 1000;

Node node_from_listing(const ListedNode& listed) {
  Node node{.name = listed.name,
            .pool = listed.partitions.empty() ? "default" : listed.partitions.front(),
            .task_slots = std::max(listed.cpus, 1),
            .gpus = listed.gpus,
            .gpu_model = listed.gpus > 0 ? listed.gpu_type : "",
            .cpu_milli = listed.cpus * kMilliPerCpu,
            .memory_bytes = listed.memory_bytes,
            .address = listed.address};
  node.labels["partitions"] = base::joined(listed.partitions, ",");
  node.labels["state"] = listed.state_text;
  for (const std::string& feature : listed.features) node.labels.emplace(feature, "");
  if (!listed.takes_jobs && !listed.reason.empty()) node.labels["reason"] = listed.reason;
  return node;
}

}  // namespace

void ClusterNodes::poll() {
  timer_.reset();
  const bool was_answering = queue_.is_answering();
  const uint64_t outages = queue_.outages();
  client_.nodes([this, was_answering, outages](const Result<std::vector<ListedNode>>& listed) {
    if (listed) {
      has_answered_ = true;
      refusal_.clear();
      update(*listed);
    } else {
      failed(listed.error(), was_answering && outages == queue_.outages());
    }
    const auto pause = has_answered_ ? options_.nodes_poll : options_.quick_poll;
    timer_ = loop_.after(pause, [this] { poll(); });
  });
}

void ClusterNodes::failed(const base::Error& error, bool was_answering) {
  // Up to v0.0.38, slurmrestd reports a refusal as an unspecified error, as it does for a controller
  // that does not answer. The listing of jobs distinguishes them, if the controller answered when
  // this request was sent: the answer to an earlier request may be a timeout.
  const bool may_be_away =
      error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kTimeout;
  if (may_be_away && !(was_answering && queue_.is_answering())) return;
  has_answered_ = true;
  if (std::exchange(refusal_, error.what) == error.what) return;
  base::log_warning(error.what + "; Muster cannot show the nodes");
}

void ClusterNodes::update(const std::vector<ListedNode>& listed) {
  std::vector<Node> now;
  for (const ListedNode& each : listed) {
    Node node = node_from_listing(each);
    if (!each.takes_jobs && answers(each.state_text)) {
      node.labels[kClosedBy] = "Slurm";
    } else if (!each.takes_jobs) {
      // A silent node has been silent since it was first listed so.
      const auto before = std::find_if(list_.begin(), list_.end(), [&](const Node& known) {
        return known.name == node.name && is_silent(known);
      });
      if (before != list_.end()) {
        node.labels[kSilentSince] = before->labels.at(kSilentSince);
      } else {
        call_silent(node, base::SystemClock().now());
      }
    }
    now.push_back(std::move(node));
  }
  if (now == list_) return;
  list_ = std::move(now);
  std::erase_if(watchers_, [](const auto& watcher) { return watcher.expired(); });
  const auto watchers = watchers_;
  for (const auto& watcher : watchers) {
    reports_.post([watcher] {
      if (const auto changed = watcher.lock()) (*changed)();
    });
  }
}

std::shared_ptr<void> ClusterNodes::watch(std::function<void()> changed) {
  auto watcher = std::make_shared<std::function<void()>>(std::move(changed));
  watchers_.push_back(watcher);
  return watcher;
}

}  // namespace muster::engine::slurm
