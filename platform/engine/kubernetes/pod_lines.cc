#include "engine/kubernetes/pod_lines.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "engine/kubernetes/streams.h"
#include "engine/node/dial.h"

namespace muster::engine::kubernetes {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

using DialledLine = Result<std::shared_ptr<node::NodeConnection>>;

constexpr std::chrono::milliseconds kFirstPause{100};
constexpr std::chrono::milliseconds kLongestPause{5000};

/// A connection through the API server to the port of a muster-node, and the handshake over it.
class PodDial : public std::enable_shared_from_this<PodDial> {
 public:
  PodDial(base::EventLoop& loop, node::NodeDial dial, std::function<void(DialledLine)> then)
      : loop_(loop), dial_(std::move(dial)), then_(std::move(then)) {}

  void begin(ApiClient& client, const std::string& space, const std::string& pod, uint16_t port) {
    call_ = open_port(client, space, pod, port,
                      [weak = weak_from_this()](Result<std::unique_ptr<node::PeerStream>> opened) {
                        if (const auto still = weak.lock()) still->opened(std::move(opened));
                      });
  }

 private:
  void opened(Result<std::unique_ptr<node::PeerStream>> opened) {
    call_.reset();
    if (!opened) return then_(std::move(opened).error());
    handshake_ = node::dial_node(loop_, *std::move(opened), dial_,
                                 [weak = weak_from_this()](DialledLine line) {
                                   const auto still = weak.lock();
                                   if (still) still->then_(std::move(line));
                                 });
  }

  base::EventLoop& loop_;
  node::NodeDial dial_;
  std::function<void(DialledLine)> then_;
  Call call_;
  std::shared_ptr<void> handshake_;
};

}  // namespace

void PodLines::keep(const PodGangPointer& gang, const std::string& task) {
  const auto found = gang->pods.find(task);
  const TaskPointer held = gang->task(task);
  if (port_ == 0 || found == gang->pods.end() || held == nullptr || gang->is_releasing) return;
  if (gang->is_unreadable) return;  // the key of its muster-nodes is unknown
  HeldPod& pod = found->second;
  const bool runs = pod.facts && !pod.is_gone &&
                    (pod.facts->task.runs ||
                     (pod.is_started && !pod.facts->task.has_ended && !pod.facts->is_over()));
  if (!runs) {
    pod.dial_retry.reset();
    pod.dial_pause = {};
    return;
  }
  const bool is_connected = held->line != nullptr || pod.dial != nullptr || pod.dial_retry;
  if (is_connected || gang->seat_of(*held).left) return;
  dial(gang, task);
}

void PodLines::dial(const PodGangPointer& gang, const std::string& task) {
  HeldPod& pod = gang->pods.at(task);
  const std::weak_ptr<PodGang> weak = gang;
  const auto dial =
      std::make_shared<PodDial>(loop_, node::NodeDial{.gang = gang->gang, .key = gang->record.key},
                                [this, weak, task](DialledLine line) {
                                  if (const auto still = weak.lock())
                                    dialled(still, task, std::move(line));
                                });
  pod.dial = dial;
  dial->begin(client_, space_, pod_name(owner_, gang->gang, task), port_);
}

void PodLines::dialled(const PodGangPointer& gang, const std::string& task, DialledLine line) {
  const auto found = gang->pods.find(task);
  if (found == gang->pods.end() || gang->is_releasing) return;
  HeldPod& pod = found->second;
  loop_.post([dial = std::exchange(pod.dial, nullptr)] {});  // it calls this function
  if (line) {
    pod.dial_pause = {};
    return tasks_.lines.connected(*std::move(line));
  }
  // In the first moments of the container muster-node does not listen yet.
  const bool is_first = pod.dial_pause == std::chrono::milliseconds{};
  pod.dial_pause = is_first ? kFirstPause : std::min(pod.dial_pause * 2, kLongestPause);
  if (pod.dial_pause == kLongestPause) {
    base::log_warning("muster-node of " + task + " of job " + gang->gang.job_id +
                      " cannot be reached: " + line.error().what);
  }
  pod.dial_retry = loop_.after(pod.dial_pause, [this, weak = std::weak_ptr(gang), task] {
    const auto still = weak.lock();
    if (!still) return;
    const auto its = still->pods.find(task);
    if (its != still->pods.end()) its->second.dial_retry.reset();
    keep(still, task);
  });
}

void PodLines::connect_stream(const PodGangPointer& gang, const std::string& task,
                              uint64_t stream) {
  if (port_ == 0) return;  // muster-node calls
  const auto dial = std::make_shared<PodDial>(
      loop_, node::NodeDial{.gang = gang->gang, .key = gang->record.key, .stream = stream},
      [this, job = gang->gang.job_id, stream](DialledLine line) {
        loop_.post([dial = std::move(streams_[stream])] {});  // it calls this function
        streams_.erase(stream);
        tasks_.orders.arrived(job, stream, std::move(line));
      });
  streams_[stream] = dial;
  dial->begin(client_, space_, pod_name(owner_, gang->gang, task), port_);
}

}  // namespace muster::engine::kubernetes
