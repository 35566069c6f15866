#include "control/monitor.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <span>
#include <utility>

#include "control/monitor_impl.h"

namespace muster::collective {
namespace {

using std::chrono::milliseconds;

// How long settle() waits. On a busy host a connection may take seconds to open, and so may an answer.
constexpr std::chrono::seconds kSettleLimit{10};

// The most bytes that are kept for a topic without a handler. More is a bug of a higher layer.
constexpr std::size_t kMostKept = std::size_t{256} << 20;

}  // namespace

std::string Monitor::Impl::name_of(int rank, const std::string& host) {
  return "rank " + std::to_string(rank) + " on host " + host;
}

FailureDetector::Peer Monitor::Impl::peer_of(const MonitorOptions& options, const Link& link) {
  return {link.rank, link.host,
          link.is_local ? options.silence_on_host : options.silence_between_hosts};
}

FailureDetector Monitor::Impl::patrol_of(const MonitorOptions& options,
                                         const std::vector<Link>& links,
                                         const Switchboard* switchboard) {
  std::vector<FailureDetector::Peer> peers;
  for (const Link& link : links) peers.push_back(peer_of(options, link));
  const int size =
      switchboard != nullptr ? switchboard->size() : static_cast<int>(links.size()) + 1;
  return {name_of(options.rank, options.host), size, options.timeout, std::move(peers)};
}

void Monitor::Impl::raise(const Descriptor& event) {
  // The only error is an overflow, and then the event is readable as well.
  static_cast<void>(::eventfd_write(event.get(), 1));
}

Monitor::Impl::Impl(Monitor& monitor, MonitorOptions options, std::vector<Link> links,
                    Switchboard* switchboard)
    : monitor_(monitor),
      options_(std::move(options)),
      tick_(std::max(milliseconds{1}, std::min(options_.probe_interval, options_.timeout))),
      switchboard_(switchboard),
      wake_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      failed_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      lines_(wake_event_),
      detector_(patrol_of(options_, links, switchboard)),
      next_to_ask_(options_.rank) {
  for (Link& link : links) lines_.add(std::move(link), true);
  thread_ = std::thread([this] { run(); });
}

Monitor::Impl::~Impl() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  raise(wake_event_);
  thread_.join();
}

void Monitor::Impl::run() {
  while (wait()) {
    pass_time();
    announce_failure();
    deliver();
  }
  send_farewell();
}

// Sleeps until an event, or until there is something to do at a certain time, and reads what has
// arrived. Returns false once the monitor ends.
bool Monitor::Impl::wait() {
  Deadline wake = {};
  {
    const Lock lock(mutex_);
    if (stopping_) return false;
    wake = next_time();
  }
  look(wake);
  const Lock lock(mutex_);
  pass_on_departures();
  return true;
}

Deadline Monitor::Impl::next_time() const {
  Deadline wake = Deadline::max();
  if (patrols()) wake = last_tick_ + tick_;
  if (repair_at_) wake = std::min(wake, *repair_at_);
  for (const auto& [rank, suspect] : suspects_) wake = std::min(wake, suspect.until);
  return wake;
}

// Waits for events and handles them. Returns whether a message has arrived.
bool Monitor::Impl::look(Deadline wake) {
  const std::uint64_t before = frames_taken_;
  const auto left = [](Deadline until) {
    return until == Deadline::max() ? -1 : milliseconds_left(until);
  };
  std::vector<pollfd> entries;
  if (switchboard_ != nullptr) {
    entries.push_back({lines_.descriptor(), POLLIN, 0});
    switchboard_->prepare(entries, wake);
    ::poll(entries.data(), entries.size(), left(wake));
  }
  std::vector<std::size_t> readable;
  lines_.wait(switchboard_ != nullptr ? 0 : left(wake),
              [&readable](std::size_t index) { readable.push_back(index); });
  eventfd_t count = 0;
  ::eventfd_read(wake_event_.get(), &count);
  {
    const Lock lock(mutex_);
    lines_.flush_unsent();
  }
  for (const std::size_t index : readable) listen(index);
  if (switchboard_ != nullptr) {
    if (Status done = switchboard_->attend(std::span(entries).subspan(1)); !done)
      fail(done.error());
    for (Switchboard::Outcome& outcome : switchboard_->take()) connect(std::move(outcome));
  }
  return frames_taken_ > before;
}

void Monitor::Impl::listen(std::size_t index) {
  ControlConnection::Received received = lines_[index].connection.listen();
  frames_taken_ += received.frames.size();
  for (Frame& frame : received.frames) take(index, std::move(frame));
  if (received.ended) ended(index, *received.ended);
}

void Monitor::Impl::take(std::size_t index, Frame frame) {
  const Lock lock(mutex_);
  Line& line = lines_[index];
  if (!line.is_confirmed) confirm(index);
  switch (frame.kind) {
    case FrameKind::kProbe:
      // A probe proves that the peer lives, but not that our probes reach it. Only an answer proves
      // that, so a peer is judged by its answers.
      detector_.note_alive(line.rank, frame.entered);
      send_to_line(index, sign_of_life(FrameKind::kAlive));
      probe_for_others(frame.reach);
      break;
    case FrameKind::kAlive:
      detector_.note_alive(line.rank, frame.entered);
      ++line.answers;
      idle_.notify_all();
      break;
    case FrameKind::kGoodbye:
      for (const Departure& departure : frame.departures) {
        if (departure.rank == line.rank && !is_complete()) {
          // The rank waits for this answer, and reads until then.
          lines_.send(index, encode(Frame{.kind = FrameKind::kParting}));
        }
        if (departure.rank == line.rank) line.received_goodbye = true;
        note(departure);
      }
      break;
    case FrameKind::kParting:
      line.is_parted = true;
      break;
    case FrameKind::kAbort:
      line.has_failed = true;
      fail_locked(std::move(frame.cause));
      break;
    case FrameKind::kMessage:
      detector_.note_alive(line.rank);
      keep(line.rank, std::move(frame));
      break;
    case FrameKind::kSpread: {
      const int origin = frame.origin;
      if (origin == options_.rank || frame.number <= spread_[origin]) break;
      pass_on(frame);
      keep(origin, std::move(frame));
      break;
    }
  }
}

void Monitor::Impl::keep(int from, Frame frame) {
  Subscription& subscription = subscriptions_[Topic{frame.topic}];
  subscription.kept_bytes += frame.payload.size();
  subscription.kept.push_back({from, std::move(frame.payload)});
  if (subscription.kept_bytes <= kMostKept) return;
  const std::string host = host_of(from);
  fail_locked({ErrorCode::kSystem,
               name_of(from, host) + " sent more messages than " +
                   name_of(options_.rank, options_.host) + " has processed",
               {},
               from,
               host});
}

// Each rank passes a message on when it first receives it, so that messages of one sender overtake
// each other on no way.
void Monitor::Impl::pass_on(const Frame& frame) {
  spread_[frame.origin] = frame.number;
  const Bytes bytes = encode(frame);
  for (std::size_t i = 0; i < lines_.size(); ++i) send_to_line(i, bytes);
}

std::string Monitor::Impl::host_of(int rank) const {
  if (switchboard_ != nullptr) return switchboard_->host_of(rank);
  const std::size_t index = lines_.to(rank);
  return index < lines_.size() ? lines_[index].host : "";
}

void Monitor::Impl::ended(std::size_t index, int reason) {
  const Lock lock(mutex_);
  lines_.end(index);
  idle_.notify_all();
  const Line& line = lines_[index];
  if (departures_.contains(line.rank)) return depart(line.rank);
  if (failure_) return;
  if (!line.is_confirmed) return suspect(line.rank, {ErrorCode::kPeerLost, reason_of_end(reason)});
  const std::string during = watches_.empty() ? "" : " in " + watches_.begin()->second.what;
  fail_locked({ErrorCode::kPeerLost,
               name_of(line.rank, line.host) + " is gone: its connection to rank " +
                   std::to_string(options_.rank) + " ended (" + reason_of_end(reason) + ")" +
                   during,
               "see the last output of that rank", line.rank, line.host});
}

void Monitor::Impl::announce_failure() {
  Lock lock(mutex_);
  while (failure_ && !wakes_.empty()) {
    const auto first = wakes_.begin();
    const std::function<void()> wake = std::move(first->second);
    wakes_.erase(first);
    waking_ = true;
    lock.unlock();
    wake();
    lock.lock();
    waking_ = false;
    idle_.notify_all();
  }
}

void Monitor::Impl::deliver() {
  Lock lock(mutex_);
  for (auto& [topic, subscription] : subscriptions_) {
    while (subscription.handler && !subscription.kept.empty()) {
      Kept message = std::move(subscription.kept.front());
      subscription.kept.pop_front();
      subscription.kept_bytes -= message.payload.size();
      const std::function<void(int, Bytes)> handler = subscription.handler;
      delivering_ = true;
      delivering_from_ = message.from;
      lock.unlock();
      handler(message.from, std::move(message.payload));
      lock.lock();
      delivering_ = false;
      idle_.notify_all();
    }
  }
}

Error Monitor::Impl::failure() const {
  const Lock lock(mutex_);
  return failure_.value_or(Error{});
}

Error Monitor::Impl::fail(Error error) {
  const Lock lock(mutex_);
  return fail_locked(std::move(error));
}

Error Monitor::Impl::fail_locked(Error error) {
  if (failure_) return *failure_;
  failure_ = std::move(error);
  monitor_.failed_.store(true, std::memory_order_release);
  raise(failed_event_);
  const Bytes abort = encode(Frame{.kind = FrameKind::kAbort, .cause = *failure_});
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (!lines_[i].has_failed) send_to_line(i, abort);
  }
  repair_at_.reset();
  suspects_.clear();
  outbox_.clear();
  idle_.notify_all();
  raise(wake_event_);
  return *failure_;
}

void Monitor::Impl::send_to_line(std::size_t index, Bytes frame) {
  const Line& line = lines_[index];
  if (!line.is_live()) return;
  if (lines_.send(index, std::move(frame)) || failure_) return;
  fail_locked({ErrorCode::kTimeout,
               name_of(line.rank, line.host) + " does not read the messages of " +
                   name_of(options_.rank, options_.host),
               "that rank is stopped, or its host cannot be reached", line.rank, line.host});
}

std::uint64_t Monitor::Impl::on_failure(std::function<void()> wake) {
  const Lock lock(mutex_);
  const std::uint64_t id = ++last_id_;
  wakes_.emplace(id, std::move(wake));
  if (failure_) raise(wake_event_);
  return id;
}

void Monitor::Impl::unsubscribe(std::uint64_t id) {
  Lock lock(mutex_);
  wakes_.erase(id);
  wait_until_over(lock, waking_);
}

void Monitor::Impl::wait_until_over(Lock& lock, const bool& is_running) {
  if (on_own_thread()) return;
  idle_.wait(lock, [&] { return !is_running; });
}

void Monitor::Impl::fail_of_longer_message(std::size_t bytes) {
  fail_locked({ErrorCode::kSystem, "a message of " + std::to_string(bytes) +
                                       " bytes is too long to be sent between ranks"});
}

void Monitor::Impl::send(int to, Topic topic, Bytes payload) {
  const Lock lock(mutex_);
  if (payload.size() > kLargestPayload) return fail_of_longer_message(payload.size());
  post(to, encode(Frame{.kind = FrameKind::kMessage,
                        .topic = static_cast<std::uint16_t>(topic),
                        .payload = std::move(payload)}));
}

void Monitor::Impl::post(int to, Bytes frame) {
  if (const std::size_t index = lines_.to(to); index < lines_.size()) {
    send_to_line(index, std::move(frame));
    if (lines_[index].connection.has_unsent()) raise(wake_event_);
    return;
  }
  if (is_complete() || to == options_.rank || failure_ || departed_.contains(to)) return;
  outbox_[to].push_back(std::move(frame));
  if (!suspects_.contains(to)) call(to);
}

void Monitor::Impl::send_to_neighbours(Topic topic, const Bytes& payload) {
  const Lock lock(mutex_);
  if (payload.size() > kLargestPayload) return fail_of_longer_message(payload.size());
  const Bytes frame = encode(Frame{
      .kind = FrameKind::kMessage, .topic = static_cast<std::uint16_t>(topic), .payload = payload});
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (lines_.to(lines_[i].rank) == i) send_to_line(i, frame);
  }
  if (lines_.has_unsent()) raise(wake_event_);
}

void Monitor::Impl::send_to_all(Topic topic, const Bytes& payload) {
  const Lock lock(mutex_);
  pass_on(Frame{.kind = FrameKind::kSpread,
                .topic = static_cast<std::uint16_t>(topic),
                .payload = payload,
                .origin = options_.rank,
                .number = spread_[options_.rank] + 1});
  if (lines_.has_unsent()) raise(wake_event_);
}

// The answer to a probe follows the messages that were sent before the probe.
void Monitor::Impl::settle() {
  const Deadline deadline = Clock::now() + kSettleLimit;
  Lock lock(mutex_);
  if (!idle_.wait_until(lock, deadline, [this] { return outbox_.empty() || failure_; })) return;
  std::map<std::size_t, std::uint64_t> awaited;
  for (std::size_t i = 0; i < lines_.size() && !failure_; ++i) {
    awaited[i] = ++lines_[i].probes;
    send_to_line(i, encode(Frame{.kind = FrameKind::kProbe,
                                 .entered = monitor_.entered_.load(std::memory_order_relaxed)}));
  }
  if (lines_.has_unsent()) raise(wake_event_);
  idle_.wait_until(lock, deadline, [&] {
    return failure_ || std::ranges::all_of(awaited, [this](const auto& one) {
             return !lines_[one.first].is_live() || lines_[one.first].answers >= one.second;
           });
  });
}

void Monitor::Impl::handle(Topic topic, std::function<void(int, Bytes)> handler) {
  Lock lock(mutex_);
  Subscription& subscription = subscriptions_[topic];
  subscription.handler = std::move(handler);
  if (!subscription.kept.empty()) raise(wake_event_);
  wait_until_over(lock, delivering_);
}

std::vector<int> Monitor::Impl::departed() const {
  const Lock lock(mutex_);
  return {departed_.begin(), departed_.end()};
}

bool Monitor::Impl::has_sent_goodbye(int rank) const {
  const Lock lock(mutex_);
  return departures_.contains(rank);
}

std::vector<int> Monitor::Impl::departed_in_step() const {
  const Lock lock(mutex_);
  const std::uint64_t entered = monitor_.entered_.load(std::memory_order_relaxed);
  std::vector<int> ranks;
  for (const int rank : departed_) {
    const auto found = departures_.find(rank);
    const bool is_ahead = found != departures_.end() && found->second > entered;
    if (!is_ahead && !has_undelivered(rank)) ranks.push_back(rank);
  }
  return ranks;
}

bool Monitor::Impl::has_undelivered(int from) const {
  if (delivering_ && delivering_from_ == from) return true;
  return std::ranges::any_of(subscriptions_, [from](const auto& entry) {
    const Subscription& subscription = entry.second;
    return subscription.handler && std::ranges::count(subscription.kept, from, &Kept::from) > 0;
  });
}

Monitor::Monitor(MonitorOptions options, std::vector<Link> links, Switchboard* switchboard)
    : process_(::getpid()),
      impl_(std::make_unique<Impl>(*this, std::move(options), std::move(links), switchboard)) {}

Monitor::~Monitor() {
  if (is_foreign()) static_cast<void>(impl_.release());
}

bool Monitor::is_foreign() const {
  return ::getpid() != process_;
}

Error Monitor::failure() const {
  return impl_->failure();
}
Error Monitor::fail(Error error) {
  return impl_->fail(std::move(error));
}
int Monitor::failure_descriptor() const {
  return impl_->failure_descriptor();
}
std::uint64_t Monitor::on_failure(std::function<void()> wake) {
  return impl_->on_failure(std::move(wake));
}
void Monitor::unsubscribe(std::uint64_t id) {
  impl_->unsubscribe(id);
}
bool Monitor::is_complete() const {
  return impl_->is_complete();
}
void Monitor::send(int to, Topic topic, Bytes payload) {
  impl_->send(to, topic, std::move(payload));
}
void Monitor::send_to_neighbours(Topic topic, const Bytes& payload) {
  impl_->send_to_neighbours(topic, payload);
}
void Monitor::send_to_all(Topic topic, const Bytes& payload) {
  impl_->send_to_all(topic, payload);
}
void Monitor::settle() {
  impl_->settle();
}
void Monitor::handle(Topic topic, std::function<void(int from, Bytes payload)> handler) {
  impl_->handle(topic, std::move(handler));
}
std::vector<int> Monitor::departed() const {
  return impl_->departed();
}
bool Monitor::has_sent_goodbye(int rank) const {
  return impl_->has_sent_goodbye(rank);
}
std::vector<int> Monitor::departed_in_step() const {
  return impl_->departed_in_step();
}

Monitor::Watch::Watch(Monitor& monitor, std::string what)
    : monitor_(monitor), id_(monitor.impl_->watch(std::move(what))) {}
void Monitor::Watch::renew() {
  monitor_.impl_->renew(id_);
}
Monitor::Watch::~Watch() {
  monitor_.impl_->unwatch(id_);
}

}  // namespace muster::collective
