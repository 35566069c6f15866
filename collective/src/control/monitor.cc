#include "control/monitor.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "control/failure_detector.h"
#include "control/frame.h"
#include "transport/socket.h"

namespace muster::collective {
namespace {

using std::chrono::milliseconds;

// The time limit for the last messages if the buffer of the other side is full.
constexpr std::chrono::seconds kFarewell{1};

// The most bytes that are kept for a topic without a handler. More is a bug of a higher layer.
constexpr std::size_t kMostKept = std::size_t{256} << 20;

constexpr std::size_t kWakeEvent = ~std::size_t{0};

std::string name_of(int rank, const std::string& host) {
  return "rank " + std::to_string(rank) + " on host " + host;
}

FailureDetector patrol_of(const MonitorOptions& options, const std::vector<Link>& links) {
  std::vector<FailureDetector::Peer> peers;
  for (const Link& link : links) {
    const milliseconds patience =
        link.is_local ? options.silence_on_host : options.silence_between_hosts;
    peers.push_back({link.rank, link.host, patience});
  }
  return {name_of(options.rank, options.host), options.timeout, std::move(peers)};
}

void raise(const Descriptor& event) {
  // The only error is an overflow, and then the event is readable as well.
  static_cast<void>(::eventfd_write(event.get(), 1));
}

}  // namespace

class Monitor::Impl {
 public:
  Impl(Monitor& monitor, MonitorOptions options, std::vector<Link> links);
  ~Impl();

  Error failure() const;
  Error fail(Error error);
  int failure_descriptor() const { return failed_event_.get(); }

  std::uint64_t watch(std::string what);
  void unwatch(std::uint64_t id);

  std::uint64_t on_failure(std::function<void()> wake);
  void unsubscribe(std::uint64_t id);

  void send(int to, Topic topic, Bytes payload);
  void handle(Topic topic, std::function<void(int, Bytes)> handler);
  std::vector<int> departed() const;

 private:
  using Lock = std::unique_lock<std::mutex>;

  struct Peer {
    int rank;
    std::string host;
    ControlConnection line;
    bool said_goodbye = false;
    bool has_ended = false;      // its connection has
    bool has_failed = false;     // it has sent a failure, and needs no other
    bool waits_to_send = false;  // in unsent_
  };

  struct Watching {
    std::string what;
    milliseconds waited{0};
  };

  struct Kept {
    int from;
    Bytes payload;
  };

  struct Hearer {
    std::function<void(int, Bytes)> handler;
    std::deque<Kept> kept;
    std::size_t kept_bytes = 0;
  };

  void run();
  bool wait();
  void flush_unsent();
  void poll_for(int operation, std::size_t index, std::uint32_t events);
  void listen(std::size_t index);
  void take(std::size_t index, Frame frame);
  void ended(std::size_t index, int reason);
  void pass_time();
  void judge(const Watching& watching);
  void deliver();
  void tell_of_failure();
  void say_farewell();

  // These functions require the lock.
  Error fail_locked(Error error);
  void tell(std::size_t index, Bytes frame);
  void ask(const std::vector<std::size_t>& peers);
  Bytes sign_of_life(FrameKind kind) const;
  void wait_until_over(Lock& lock, const bool& is_running);
  bool on_own_thread() const { return std::this_thread::get_id() == thread_.get_id(); }

  Monitor& monitor_;
  const MonitorOptions options_;
  const milliseconds tick_;
  // Each peer by its index, and the wake event by kWakeEvent. With poll(), every message would cost
  // time for every rank of the world.
  Descriptor epoll_;
  std::vector<epoll_event> events_;  // the thread's own
  Descriptor wake_event_;
  Descriptor failed_event_;

  mutable std::mutex mutex_;
  std::condition_variable idle_;  // a callback has returned
  std::vector<Peer> peers_;
  std::vector<std::size_t> unsent_;  // peers whose queue is not empty
  FailureDetector detector_;
  std::optional<Error> failure_;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, Watching> watches_;
  std::map<std::uint64_t, std::function<void()>> wakes_;
  std::map<Topic, Hearer> hearers_;
  bool waking_ = false;      // a function of wakes_ is running
  bool delivering_ = false;  // a handler of hearers_ is running
  bool stopping_ = false;
  Deadline last_tick_ = {};

  std::thread thread_;
};

Monitor::Impl::Impl(Monitor& monitor, MonitorOptions options, std::vector<Link> links)
    : monitor_(monitor),
      options_(std::move(options)),
      tick_(std::max(milliseconds{1}, std::min(options_.probe_interval, options_.timeout))),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      events_(links.size() + 1),
      wake_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      failed_event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      detector_(patrol_of(options_, links)) {
  for (Link& link : links) {
    peers_.push_back({link.rank, std::move(link.host), ControlConnection(std::move(link.socket))});
    poll_for(EPOLL_CTL_ADD, peers_.size() - 1, EPOLLIN);
  }
  poll_for(EPOLL_CTL_ADD, kWakeEvent, EPOLLIN);
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
    tell_of_failure();
    deliver();
  }
  say_farewell();
}

void Monitor::Impl::poll_for(int operation, std::size_t index, std::uint32_t events) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = index;
  const int fd = index == kWakeEvent ? wake_event_.get() : peers_[index].line.fd();
  ::epoll_ctl(epoll_.get(), operation, fd, &event);
}

// Sleeps until an event, or until the next tick if there is a watch, and reads what has arrived.
// Returns false once the monitor ends.
bool Monitor::Impl::wait() {
  milliseconds pause{-1};
  {
    const Lock lock(mutex_);
    if (stopping_) return false;
    if (!watches_.empty() && !failure_) {
      pause = milliseconds{milliseconds_left(last_tick_ + tick_)};
    }
  }
  const int found = ::epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()),
                                 static_cast<int>(pause.count()));
  eventfd_t count = 0;
  ::eventfd_read(wake_event_.get(), &count);
  flush_unsent();
  for (int i = 0; i < found; ++i) {
    const epoll_event& event = events_[static_cast<std::size_t>(i)];
    if (event.data.u64 == kWakeEvent || (event.events & ~EPOLLOUT) == 0) continue;
    listen(event.data.u64);
  }
  return true;
}

void Monitor::Impl::flush_unsent() {
  const Lock lock(mutex_);
  std::erase_if(unsent_, [this](std::size_t index) {
    Peer& peer = peers_[index];
    peer.line.flush();
    peer.waits_to_send = peer.line.wants_to_send();
    if (!peer.waits_to_send && !peer.has_ended) poll_for(EPOLL_CTL_MOD, index, EPOLLIN);
    return !peer.waits_to_send;
  });
}

void Monitor::Impl::listen(std::size_t index) {
  ControlConnection::Heard heard = peers_[index].line.listen();
  for (Frame& frame : heard.frames) take(index, std::move(frame));
  if (heard.ended) ended(index, *heard.ended);
}

void Monitor::Impl::take(std::size_t index, Frame frame) {
  const Lock lock(mutex_);
  Peer& peer = peers_[index];
  switch (frame.kind) {
    case FrameKind::kProbe:
      // A probe proves that the peer lives, but not that our probes reach it. Only an answer proves
      // that, so a peer is judged by its answers.
      detector_.heard(index, frame.entered);
      tell(index, sign_of_life(FrameKind::kAlive));
      break;
    case FrameKind::kAlive:
      detector_.heard(index, frame.entered);
      break;
    case FrameKind::kGoodbye:
      detector_.heard(index, frame.entered);
      detector_.departed(index);
      peer.said_goodbye = true;
      break;
    case FrameKind::kAbort:
      peer.has_failed = true;
      fail_locked(std::move(frame.cause));
      break;
    case FrameKind::kMessage: {
      detector_.heard(index);
      Hearer& hearer = hearers_[Topic{frame.topic}];
      hearer.kept_bytes += frame.payload.size();
      hearer.kept.push_back({peer.rank, std::move(frame.payload)});
      if (hearer.kept_bytes > kMostKept) {
        fail_locked({ErrorCode::kSystem,
                     name_of(peer.rank, peer.host) + " sent more messages than " +
                         name_of(options_.rank, options_.host) + " has processed",
                     {},
                     peer.rank,
                     peer.host});
      }
      break;
    }
  }
}

void Monitor::Impl::ended(std::size_t index, int reason) {
  const Lock lock(mutex_);
  Peer& peer = peers_[index];
  peer.has_ended = true;
  poll_for(EPOLL_CTL_DEL, index, 0);
  peer.line.finish();
  detector_.departed(index);
  if (peer.said_goodbye || failure_) return;
  const std::string during = watches_.empty() ? "" : " in " + watches_.begin()->second.what;
  fail_locked({ErrorCode::kPeerLost,
               name_of(peer.rank, peer.host) + " is gone: its connection to rank " +
                   std::to_string(options_.rank) + " ended (" + reason_of_end(reason) + ")" +
                   during,
               "see the last output of that rank", peer.rank, peer.host});
}

void Monitor::Impl::pass_time() {
  const Lock lock(mutex_);
  if (watches_.empty() || failure_) return;
  const auto passed = std::chrono::floor<milliseconds>(Clock::now() - last_tick_);
  if (passed >= tick_) {
    last_tick_ = Clock::now();
    ask(detector_.tick(passed, tick_));
    // If more than a tick has passed, this process itself was paused: the rest is not counted.
    for (auto& [id, watching] : watches_) watching.waited += std::min(passed, tick_);
  }
  judge(watches_.begin()->second);
}

void Monitor::Impl::judge(const Watching& watching) {
  const std::uint64_t entered = monitor_.entered_.load(std::memory_order_relaxed);
  std::optional<Error> error = detector_.missing(entered, watching.what);
  if (!error) error = detector_.silent(watching.what);
  if (!error) error = detector_.late(entered, watching.waited, watching.what);
  if (error) fail_locked(*std::move(error));
}

void Monitor::Impl::tell_of_failure() {
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
  for (auto& [topic, hearer] : hearers_) {
    while (hearer.handler && !hearer.kept.empty()) {
      Kept message = std::move(hearer.kept.front());
      hearer.kept.pop_front();
      hearer.kept_bytes -= message.payload.size();
      const std::function<void(int, Bytes)> handler = hearer.handler;
      delivering_ = true;
      lock.unlock();
      handler(message.from, std::move(message.payload));
      lock.lock();
      delivering_ = false;
      idle_.notify_all();
    }
  }
}

// Sends the last message before the connections close: a goodbye, or the failure, which is already
// queued.
void Monitor::Impl::say_farewell() {
  const Deadline deadline = Clock::now() + kFarewell;
  Lock lock(mutex_);
  for (std::size_t i = 0; i < peers_.size() && !failure_; ++i) {
    tell(i, sign_of_life(FrameKind::kGoodbye));
  }
  for (Peer& peer : peers_) {
    while (peer.line.wants_to_send() && !peer.has_ended && Clock::now() < deadline) {
      pollfd entry = {peer.line.fd(), POLLOUT, 0};
      ::poll(&entry, 1, milliseconds_left(deadline));
      peer.line.flush();
    }
    peer.line.finish();
    // Closing a socket with unread bytes sends a reset, which can overtake the last message.
    static_cast<void>(peer.line.listen());
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
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (!peers_[i].has_failed) tell(i, abort);
  }
  raise(wake_event_);
  return *failure_;
}

void Monitor::Impl::tell(std::size_t index, Bytes frame) {
  Peer& peer = peers_[index];
  if (peer.said_goodbye || peer.has_ended) return;
  const bool has_room = peer.line.send(std::move(frame));
  if (peer.line.wants_to_send() && !peer.waits_to_send) {
    peer.waits_to_send = true;
    unsent_.push_back(index);
    poll_for(EPOLL_CTL_MOD, index, EPOLLIN | EPOLLOUT);
  }
  if (!has_room && !failure_) {
    fail_locked({ErrorCode::kTimeout,
                 name_of(peer.rank, peer.host) + " does not read the messages of " +
                     name_of(options_.rank, options_.host),
                 "that rank is stopped, or its host cannot be reached", peer.rank, peer.host});
  }
}

void Monitor::Impl::ask(const std::vector<std::size_t>& peers) {
  for (const std::size_t index : peers) tell(index, sign_of_life(FrameKind::kProbe));
}

Bytes Monitor::Impl::sign_of_life(FrameKind kind) const {
  return encode(Frame{.kind = kind, .entered = monitor_.entered_.load(std::memory_order_relaxed)});
}

std::uint64_t Monitor::Impl::watch(std::string what) {
  const Lock lock(mutex_);
  const std::uint64_t id = ++last_id_;
  if (watches_.empty() && !failure_) {
    last_tick_ = Clock::now();
    ask(detector_.begin());
  }
  watches_.emplace(id, Watching{std::move(what)});
  raise(wake_event_);
  return id;
}

void Monitor::Impl::unwatch(std::uint64_t id) {
  const Lock lock(mutex_);
  watches_.erase(id);
  if (watches_.empty()) detector_.end();
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

void Monitor::Impl::send(int to, Topic topic, Bytes payload) {
  const Lock lock(mutex_);
  if (payload.size() > kLargestPayload) {
    fail_locked({ErrorCode::kSystem, "a message of " + std::to_string(payload.size()) +
                                         " bytes is too long to be sent between ranks"});
    return;
  }
  const auto found = std::ranges::find(peers_, to, &Peer::rank);
  if (found == peers_.end()) return;
  tell(static_cast<std::size_t>(found - peers_.begin()),
       encode(Frame{.kind = FrameKind::kMessage,
                    .topic = static_cast<std::uint16_t>(topic),
                    .payload = std::move(payload)}));
  if (found->line.wants_to_send()) raise(wake_event_);
}

void Monitor::Impl::handle(Topic topic, std::function<void(int, Bytes)> handler) {
  Lock lock(mutex_);
  Hearer& hearer = hearers_[topic];
  hearer.handler = std::move(handler);
  if (!hearer.kept.empty()) raise(wake_event_);
  wait_until_over(lock, delivering_);
}

std::vector<int> Monitor::Impl::departed() const {
  const Lock lock(mutex_);
  std::vector<int> ranks;
  for (const Peer& peer : peers_) {
    if (peer.said_goodbye) ranks.push_back(peer.rank);
  }
  return ranks;
}

Monitor::Monitor(MonitorOptions options, std::vector<Link> links)
    : impl_(std::make_unique<Impl>(*this, std::move(options), std::move(links))) {}

Monitor::~Monitor() = default;

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
void Monitor::send(int to, Topic topic, Bytes payload) {
  impl_->send(to, topic, std::move(payload));
}
void Monitor::handle(Topic topic, std::function<void(int from, Bytes payload)> handler) {
  impl_->handle(topic, std::move(handler));
}
std::vector<int> Monitor::departed() const {
  return impl_->departed();
}

Monitor::Watch::Watch(Monitor& monitor, std::string what)
    : monitor_(monitor), id_(monitor.impl_->watch(std::move(what))) {}
Monitor::Watch::~Watch() {
  monitor_.impl_->unwatch(id_);
}

}  // namespace muster::collective
