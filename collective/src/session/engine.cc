#include "session/engine.h"

#include <algorithm>

namespace muster::collective::session {
namespace {

// Without a copy nothing is won by more: what is done first is back first.
constexpr std::uint64_t kFusionBytes = std::uint64_t{32} << 20U;

bool is_crowded(const World& world) {
  const auto local = world.topology.host_of.empty()
                         ? std::size_t{1}
                         : world.topology.neighbours_of(world.rank).size();
  return local > std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace

std::unique_ptr<Channel> channel_over(const SessionBase& base, Channel::Take take) {
  const World& world = base.world;
  if (base.shared == nullptr || base.shared_bytes < least_shared_bytes(world.size)) {
    return message_channel(world.rank, world.size, *world.monitor, std::move(take));
  }
  return shared_channel(world.rank, world.size, base.shared, base.shared_bytes, *world.monitor,
                        std::move(take));
}

Engine::Engine(SessionBase base, SessionOptions options, MakeChannel make_channel)
    : base_(std::move(base)),
      options_(std::move(options)),
      make_channel_(std::move(make_channel)),
      crowded_(is_crowded(base_.world)),
      carrier_(base_) {
  if (options_.fusion_bytes == 0) options_.fusion_bytes = kFusionBytes;
}

Status Engine::start() {
  if (size() > 1) take_part();
  if (!options_.timeline.empty()) {
    if (Status opened = start_timeline(options_.timeline); !opened) return opened;
  }
  if (rank() != 0 || size() == 1 || !options_.autotune || options_.autotune_log.empty()) return {};
  const std::lock_guard duty(duty_);
  autotune_log_.open(options_.autotune_log);
  if (autotune_log_) return {};
  return Error{ErrorCode::kSystem, "cannot write the log " + options_.autotune_log};
}

// Before anything can fail: the others have to hear it when this rank leaves.
void Engine::take_part() {
  if (rank() == 0) {
    coordinator_ = std::make_unique<Coordinator>(base_.world.hosts, options_.fusion_bytes);
    if (options_.autotune) {
      constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
      autotune_.emplace(std::vector<std::uint64_t>{kMiB, 4 * kMiB, 16 * kMiB, 64 * kMiB});
      coordinator_->set_fusion_bytes(autotune_->current());
    }
  }
  channel_ =
      make_channel_(base_, [this](int from, ByteView message) { return take(from, message); });
  failure_subscription_ = monitor()->on_failure([this] { bell().ring(); });
  thread_ = std::thread([this] { serve(); });
}

Engine::~Engine() {
  leave();
  channel_.reset();
  static_cast<void>(stop_timeline());
}

// The channel stays: others may be in the middle of a call still.
void Engine::leave() {
  if (stopping_.exchange(true)) return;
  if (thread_.joinable()) {
    bell().ring();
    thread_.join();
    monitor()->unsubscribe(failure_subscription_);
  }
  {
    const std::lock_guard duty(duty_);
    if (!over_) {
      end({.code = ErrorCode::kPeerLost,
           .message = base_.world.name_of(rank()) + " has ended its session",
           .rank = rank(),
           .host = base_.world.hosts[static_cast<std::size_t>(rank())]});
    }
  }
  if (channel_ && !monitor()->failed()) {
    channel_->leave(rank() == 0 ? encode(Record{Left{0}}) : encode(Leave{}));
  }
}

Status Engine::start_timeline(const std::string& path) {
  const std::lock_guard lock(timeline_mutex_);
  traces_ = false;
  if (const std::shared_ptr<Timeline> previous = std::exchange(timeline_, nullptr)) {
    if (Status closed = previous->close(); !closed) return closed;
  }
  const std::string& host = base_.world.hosts.empty()
                                ? base_.world.options.host
                                : base_.world.hosts[static_cast<std::size_t>(rank())];
  Result<std::unique_ptr<Timeline>> opened = Timeline::open(path, rank(), host);
  if (!opened) return opened.error();
  timeline_ = *std::move(opened);
  traces_ = true;
  return {};
}

Status Engine::stop_timeline() {
  const std::lock_guard lock(timeline_mutex_);
  traces_ = false;
  if (!timeline_) return {};
  Status closed = timeline_->close();
  timeline_.reset();
  return closed;
}

}  // namespace muster::collective::session
