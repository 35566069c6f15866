#include "control/monitor.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <bit>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "control/failure_detector.h"
#include "control/frame.h"
#include "control/graph.h"
#include "control/lines.h"
#include "transport/socket.h"

namespace muster::collective {
namespace {

using std::chrono::milliseconds;

// The time limit for the last messages if the other side does not read or answer, from the last
// message on that it has sent; and a limit in any case.
constexpr std::chrono::seconds kFarewell{1};
constexpr std::chrono::seconds kLongestFarewell{10};

// The most bytes that are kept for a topic without a handler. More is a bug of a higher layer.
constexpr std::size_t kMostKept = std::size_t{256} << 20;

// How long after a departure a rank connects to another neighbour. At the end of a job all ranks
// leave at nearly the same time.
constexpr milliseconds kBeforeRepair{1'000};

// How long after a rank could not be reached its goodbye, or the news of its death, may arrive.
constexpr milliseconds kGrace{3'000};

// Ticks for which a rank probes on behalf of other ranks after their last probe. Longer than it
// takes to probe all neighbours in turn.
constexpr int kDeputyTicks = 10;

// At the timeout of a call: the pause between the ranks that begin to ask all others, and the ranks
// to which they connect at a time.
constexpr milliseconds kBetweenRollCalls{50};
constexpr int kCalledAtOnce = 16;

std::string name_of(int rank, const std::string& host) {
  return "rank " + std::to_string(rank) + " on host " + host;
}

FailureDetector::Peer peer_of(const MonitorOptions& options, const Link& link) {
  return {link.rank, link.host,
          link.is_local ? options.silence_on_host : options.silence_between_hosts};
}

FailureDetector patrol_of(const MonitorOptions& options, const std::vector<Link>& links,
                          const Switchboard* switchboard) {
  std::vector<FailureDetector::Peer> peers;
  for (const Link& link : links) peers.push_back(peer_of(options, link));
  const int size =
      switchboard != nullptr ? switchboard->size() : static_cast<int>(links.size()) + 1;
  return {name_of(options.rank, options.host), size, options.timeout, std::move(peers)};
}

void raise(const Descriptor& event) {
  // The only error is an overflow, and then the event is readable as well.
  static_cast<void>(::eventfd_write(event.get(), 1));
}

}  // namespace

class Monitor::Impl {
 public:
  Impl(Monitor& monitor, MonitorOptions options, std::vector<Link> links, Switchboard* switchboard);
  ~Impl();

  Error failure() const;
  Error fail(Error error);
  int failure_descriptor() const { return failed_event_.get(); }

  std::uint64_t watch(std::string what);
  void unwatch(std::uint64_t id);

  std::uint64_t on_failure(std::function<void()> wake);
  void unsubscribe(std::uint64_t id);

  bool is_complete() const { return switchboard_ == nullptr; }
  void send(int to, Topic topic, Bytes payload);
  void send_to_neighbours(Topic topic, const Bytes& payload);
  void send_to_all(Topic topic, const Bytes& payload);
  void settle();
  void handle(Topic topic, std::function<void(int, Bytes)> handler);
  std::vector<int> departed() const;

 private:
  using Lock = std::unique_lock<std::mutex>;

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

  // A rank that could not be reached: it may have left or died, which is not known here yet.
  struct Suspect {
    Deadline until;
    Error obstacle;
  };

  void run();
  bool wait();
  bool look(Deadline wake);
  void listen(std::size_t index);
  void take(std::size_t index, Frame frame);
  void keep(int from, Frame frame);
  void pass_on(const Frame& frame);
  void ended(std::size_t index, int reason);
  void connect(Switchboard::Outcome outcome);
  void pass_time();
  void judge(const Watching* watching);
  void deliver();
  void tell_of_failure();
  void say_farewell();
  void say_goodbye();

  // These functions require the lock.
  Deadline next_time() const;
  std::string host_of(int rank) const;
  Error fail_locked(Error error);
  void fail_of_longer_message(std::size_t bytes);
  void post(int to, Bytes frame);
  void tell(std::size_t index, Bytes frame);
  void ask(const std::vector<int>& ranks);
  Bytes sign_of_life(FrameKind kind) const;

  // Probing.
  bool patrols() const { return !failure_ && (!watches_.empty() || deputy_reach_ > 0); }
  int reach() const;
  void begin_patrol();
  void deputize(int reach);
  void take_roll();

  // Ranks that leave.
  void note(Departure departure);
  void depart(int rank);
  void confirm(std::size_t index);
  void suspect(int rank, Error obstacle);
  void pass_on_departures();
  bool is_absent(int rank) const { return departures_.contains(rank) || suspects_.contains(rank); }
  void repair();
  void call(int rank);
  void resolve_suspects();

  void wait_until_over(Lock& lock, const bool& is_running);
  bool on_own_thread() const { return std::this_thread::get_id() == thread_.get_id(); }

  Monitor& monitor_;
  const MonitorOptions options_;
  const milliseconds tick_;
  Switchboard* const switchboard_;
  Descriptor wake_event_;
  Descriptor failed_event_;

  mutable std::mutex mutex_;
  std::condition_variable idle_;  // a callback has returned, or a message was answered
  Lines lines_;
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

  int deputy_reach_ = 0;  // of the last probe on behalf of others
  Deadline deputy_until_ = {};
  bool takes_roll_ = false;
  int next_in_roll_ = 0;

  std::map<int, std::uint64_t> departures_;  // calls of the ranks that have said goodbye, by rank
  std::set<int> departed_;                   // of these, and of ranks that are gone for good
  std::vector<Departure> news_;              // to be passed on
  std::map<int, Suspect> suspects_;
  std::optional<Deadline> repair_at_;
  std::set<int> called_;                            // ranks without a confirmed connection yet
  std::map<int, FailureDetector::Peer> newcomers_;  // of these, those with a connection
  std::map<int, std::vector<Bytes>> outbox_;        // frames for these ranks
  std::map<int, std::uint64_t> spread_;             // the last message to all, by sender
  std::uint64_t frames_taken_ = 0;                  // the thread's own

  std::thread thread_;
};

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
      next_in_roll_(options_.rank) {
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
    tell_of_failure();
    deliver();
  }
  say_farewell();
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
  ControlConnection::Heard heard = lines_[index].connection.listen();
  frames_taken_ += heard.frames.size();
  for (Frame& frame : heard.frames) take(index, std::move(frame));
  if (heard.ended) ended(index, *heard.ended);
}

void Monitor::Impl::take(std::size_t index, Frame frame) {
  const Lock lock(mutex_);
  Line& line = lines_[index];
  if (!line.is_confirmed) confirm(index);
  switch (frame.kind) {
    case FrameKind::kProbe:
      // A probe proves that the peer lives, but not that our probes reach it. Only an answer proves
      // that, so a peer is judged by its answers.
      detector_.heard(line.rank, frame.entered);
      tell(index, sign_of_life(FrameKind::kAlive));
      deputize(frame.reach);
      break;
    case FrameKind::kAlive:
      detector_.heard(line.rank, frame.entered);
      ++line.answers;
      idle_.notify_all();
      break;
    case FrameKind::kGoodbye:
      for (const Departure& departure : frame.departures) {
        if (departure.rank == line.rank && !is_complete()) {
          // The rank waits for this answer, and reads until then.
          lines_.send(index, encode(Frame{.kind = FrameKind::kParting}));
        }
        if (departure.rank == line.rank) line.said_goodbye = true;
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
      detector_.heard(line.rank);
      keep(line.rank, std::move(frame));
      break;
    case FrameKind::kSpread:
      if (frame.origin == options_.rank || frame.number <= spread_[frame.origin]) break;
      pass_on(frame);
      keep(frame.origin, std::move(frame));
      break;
  }
}

void Monitor::Impl::keep(int from, Frame frame) {
  Hearer& hearer = hearers_[Topic{frame.topic}];
  hearer.kept_bytes += frame.payload.size();
  hearer.kept.push_back({from, std::move(frame.payload)});
  if (hearer.kept_bytes <= kMostKept) return;
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
  for (std::size_t i = 0; i < lines_.size(); ++i) tell(i, bytes);
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

void Monitor::Impl::pass_time() {
  const Lock lock(mutex_);
  if (failure_) return;
  if (repair_at_ && Clock::now() >= *repair_at_) repair();
  resolve_suspects();
  if (deputy_reach_ > 0 && Clock::now() >= deputy_until_) {
    deputy_reach_ = 0;
    if (!patrols()) detector_.end();
  }
  if (!patrols()) return;
  const auto passed = std::chrono::floor<milliseconds>(Clock::now() - last_tick_);
  if (passed >= tick_) {
    last_tick_ = Clock::now();
    ask(detector_.tick(passed, tick_));
    // If more than a tick has passed, this process itself was paused: the rest is not counted.
    for (auto& [id, watching] : watches_) watching.waited += std::min(passed, tick_);
    if (!is_complete()) take_roll();
  }
  judge(watches_.empty() ? nullptr : &watches_.begin()->second);
}

void Monitor::Impl::judge(const Watching* watching) {
  if (watching == nullptr) {
    if (std::optional<Error> error = detector_.silent("a call of another rank")) {
      fail_locked(*std::move(error));
    }
    return;
  }
  const std::uint64_t entered = monitor_.entered_.load(std::memory_order_relaxed);
  std::optional<Error> error = detector_.missing(entered, watching->what);
  if (!error) error = detector_.silent(watching->what);
  if (!error && (is_complete() || takes_roll_)) {
    error = detector_.late(entered, watching->waited, watching->what);
  }
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
  say_goodbye();
  const Lock lock(mutex_);
  for (Line& line : lines_.all()) {
    while (line.connection.wants_to_send() && !line.has_ended && Clock::now() < deadline) {
      pollfd entry = {line.connection.fd(), POLLOUT, 0};
      ::poll(&entry, 1, milliseconds_left(deadline));
      line.connection.flush();
    }
    line.connection.finish();
    // Closing a socket with unread bytes sends a reset, which can overtake the last message.
    static_cast<void>(line.connection.listen());
  }
}

// In a complete graph every rank gets the goodbye from this one. Otherwise the neighbours pass it
// on, and this rank stays until they have received it; a message that waits for its connection goes
// first.
void Monitor::Impl::say_goodbye() {
  const Deadline limit = Clock::now() + kLongestFarewell;
  Deadline deadline = Clock::now() + kFarewell;
  for (;;) {
    {
      const Lock lock(mutex_);
      if (failure_) return;
      bool waits = !outbox_.empty();
      for (std::size_t i = 0; i < lines_.size() && (outbox_.empty() || is_complete()); ++i) {
        Line& line = lines_[i];
        if (!std::exchange(line.sent_goodbye, true) && !line.has_ended) {
          // Also to a rank that leaves: it sees the connection end while it waits for other ranks.
          const std::uint64_t entered = monitor_.entered_.load(std::memory_order_relaxed);
          lines_.send(i, encode(Frame{.kind = FrameKind::kGoodbye,
                                      .departures = {{options_.rank, entered}}}));
        }
        waits |= !line.is_parted && !line.has_ended && !line.said_goodbye;
      }
      if (is_complete() || !waits || Clock::now() >= std::min(limit, deadline)) return;
    }
    if (look(std::min(limit, deadline))) deadline = Clock::now() + kFarewell;
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
    if (!lines_[i].has_failed) tell(i, abort);
  }
  repair_at_.reset();
  suspects_.clear();
  outbox_.clear();
  idle_.notify_all();
  raise(wake_event_);
  return *failure_;
}

void Monitor::Impl::tell(std::size_t index, Bytes frame) {
  const Line& line = lines_[index];
  if (!line.is_live()) return;
  if (lines_.send(index, std::move(frame)) || failure_) return;
  fail_locked({ErrorCode::kTimeout,
               name_of(line.rank, line.host) + " does not read the messages of " +
                   name_of(options_.rank, options_.host),
               "that rank is stopped, or its host cannot be reached", line.rank, line.host});
}

Bytes Monitor::Impl::sign_of_life(FrameKind kind) const {
  const auto further = static_cast<std::uint8_t>(kind == FrameKind::kProbe ? reach() : 0);
  return encode(Frame{.kind = kind,
                      .entered = monitor_.entered_.load(std::memory_order_relaxed),
                      .reach = further});
}

// Probing.

void Monitor::Impl::ask(const std::vector<int>& ranks) {
  for (const int rank : ranks) {
    const std::size_t index = lines_.to(rank);
    if (index == lines_.size()) continue;
    ++lines_[index].probes;
    tell(index, sign_of_life(FrameKind::kProbe));
  }
}

// The reach of a probe that is sent now. The graph has no two ranks that are further apart.
int Monitor::Impl::reach() const {
  if (is_complete()) return 0;
  if (watches_.empty()) return std::max(0, deputy_reach_ - 1);
  return std::bit_width(static_cast<unsigned>(switchboard_->size()));
}

void Monitor::Impl::begin_patrol() {
  last_tick_ = Clock::now();
  ask(detector_.begin());
}

// A lower reach does not prolong a higher one. So two neighbours that probe only because the other
// one does stop after a while.
void Monitor::Impl::deputize(int reach) {
  if (reach == 0 || reach < deputy_reach_ || failure_) return;
  const bool begins = !patrols();
  deputy_reach_ = reach;
  deputy_until_ = Clock::now() + kDeputyTicks * tick_;
  if (begins) {
    begin_patrol();
    raise(wake_event_);
  }
}

std::uint64_t Monitor::Impl::watch(std::string what) {
  const Lock lock(mutex_);
  const std::uint64_t id = ++last_id_;
  const bool begins = !patrols() && !failure_;
  watches_.emplace(id, Watching{std::move(what)});
  if (begins) begin_patrol();
  raise(wake_event_);
  return id;
}

void Monitor::Impl::unwatch(std::uint64_t id) {
  const Lock lock(mutex_);
  watches_.erase(id);
  if (!watches_.empty()) return;
  takes_roll_ = false;
  if (!patrols()) detector_.end();
}

// At the timeout: connects to all ranks and asks each for its calls.
void Monitor::Impl::take_roll() {
  if (watches_.empty()) return;
  const int size = switchboard_->size();
  const milliseconds pause = std::min(options_.timeout, size * kBetweenRollCalls);
  const milliseconds waited = watches_.begin()->second.waited;
  if (waited < options_.timeout + pause * options_.rank / size) return;
  if (!std::exchange(takes_roll_, true)) detector_.ask_anew();
  ask(detector_.ask_for_answers());
  int called = 0;
  for (int steps = 0; steps < size && called < kCalledAtOnce; ++steps) {
    next_in_roll_ = (next_in_roll_ + 1) % size;
    if (next_in_roll_ == options_.rank || detector_.knows(next_in_roll_)) continue;
    call(next_in_roll_);
    ++called;
  }
}

// Ranks that leave, and connections that are opened later.

// A rank that has left on another connection may still have messages under way on its own one: then
// its own goodbye counts.
void Monitor::Impl::note(Departure departure) {
  const bool is_new = departures_.emplace(departure.rank, departure.entered).second;
  if (is_new && !is_complete() && !stopping_) news_.push_back(departure);
  if (!lines_.has_live(departure.rank)) depart(departure.rank);
}

void Monitor::Impl::depart(int rank) {
  if (rank == options_.rank) return;
  suspects_.erase(rank);
  outbox_.erase(rank);
  called_.erase(rank);
  departed_.insert(rank);
  idle_.notify_all();
  const auto found = departures_.find(rank);
  const std::uint64_t entered = found == departures_.end() ? 0 : found->second;
  if (is_complete()) {
    detector_.heard(rank, entered);
    detector_.departed(rank);
    return;
  }
  detector_.departed(rank, host_of(rank), entered);
  if (!repair_at_ && !failure_) repair_at_ = Clock::now() + kBeforeRepair;
}

void Monitor::Impl::pass_on_departures() {
  const std::vector<Departure> news = std::exchange(news_, {});
  if (news.empty()) return;
  const Bytes frame = encode(Frame{.kind = FrameKind::kGoodbye, .departures = news});
  for (std::size_t i = 0; i < lines_.size(); ++i) tell(i, frame);
}

void Monitor::Impl::repair() {
  repair_at_.reset();
  const auto absent = [this](int rank) { return is_absent(rank) || departed_.contains(rank); };
  for (const int rank : successors_of(options_.rank, switchboard_->size(), absent)) {
    if (lines_.to(rank) == lines_.size()) call(rank);
  }
}

void Monitor::Impl::call(int rank) {
  if (called_.insert(rank).second) switchboard_->call(rank);
}

// Both ranks greet each other with what they know of departures. Until the greeting has come, the
// other rank may have left without having seen this connection.
void Monitor::Impl::connect(Switchboard::Outcome outcome) {
  const Lock lock(mutex_);
  const int rank = outcome.link.rank;
  if (outcome.obstacle) return suspect(rank, *std::move(outcome.obstacle));
  called_.insert(rank);
  newcomers_.emplace(rank, peer_of(options_, outcome.link));
  const std::size_t index = lines_.add(std::move(outcome.link), false);
  Frame known{.kind = FrameKind::kGoodbye};
  for (const auto& [other, entered] : departures_) known.departures.push_back({other, entered});
  tell(index, encode(known));
  if (failure_) tell(index, encode(Frame{.kind = FrameKind::kAbort, .cause = *failure_}));
}

void Monitor::Impl::confirm(std::size_t index) {
  const int rank = lines_[index].rank;
  lines_.confirm(index);
  called_.erase(rank);
  suspects_.erase(rank);
  if (const auto newcomer = newcomers_.find(rank); newcomer != newcomers_.end()) {
    detector_.add(newcomer->second);
    newcomers_.erase(newcomer);
  }
  const auto waiting = outbox_.find(rank);
  if (waiting == outbox_.end()) return;
  const std::vector<Bytes> frames = std::move(waiting->second);
  outbox_.erase(waiting);
  for (const Bytes& frame : frames) tell(lines_.to(rank), frame);
  idle_.notify_all();
}

void Monitor::Impl::suspect(int rank, Error obstacle) {
  called_.erase(rank);
  if (departed_.contains(rank) || failure_) return;
  if (lines_.to(rank) < lines_.size()) return;
  suspects_.insert_or_assign(rank, Suspect{Clock::now() + kGrace, std::move(obstacle)});
  if (!stopping_) repair_at_ = Clock::now();
}

// A rank that could not be reached, and of which no other rank knows that it has left or died. If
// no message must go there, it counts as gone here.
void Monitor::Impl::resolve_suspects() {
  for (auto at = suspects_.begin(); at != suspects_.end();) {
    const auto [rank, suspect] = *at;
    if (Clock::now() < suspect.until) {
      ++at;
      continue;
    }
    at = suspects_.erase(at);
    if (!outbox_.contains(rank)) {
      depart(rank);
      continue;
    }
    fail_locked({ErrorCode::kPeerLost,
                 name_of(rank, host_of(rank)) + " and " + name_of(options_.rank, options_.host) +
                     " did not connect: " + suspect.obstacle.message,
                 "see the last output of that rank", rank, host_of(rank)});
    return;
  }
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

// Messages of higher layers.

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
    tell(index, std::move(frame));
    if (lines_[index].connection.wants_to_send()) raise(wake_event_);
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
    if (lines_.to(lines_[i].rank) == i) tell(i, frame);
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
  const Deadline deadline = Clock::now() + kFarewell;
  Lock lock(mutex_);
  if (!idle_.wait_until(lock, deadline, [this] { return outbox_.empty() || failure_; })) return;
  std::map<std::size_t, std::uint64_t> awaited;
  for (std::size_t i = 0; i < lines_.size() && !failure_; ++i) {
    awaited[i] = ++lines_[i].probes;
    tell(i, encode(Frame{.kind = FrameKind::kProbe,
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
  Hearer& hearer = hearers_[topic];
  hearer.handler = std::move(handler);
  if (!hearer.kept.empty()) raise(wake_event_);
  wait_until_over(lock, delivering_);
}

std::vector<int> Monitor::Impl::departed() const {
  const Lock lock(mutex_);
  return {departed_.begin(), departed_.end()};
}

Monitor::Monitor(MonitorOptions options, std::vector<Link> links, Switchboard* switchboard)
    : impl_(std::make_unique<Impl>(*this, std::move(options), std::move(links), switchboard)) {}

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

Monitor::Watch::Watch(Monitor& monitor, std::string what)
    : monitor_(monitor), id_(monitor.impl_->watch(std::move(what))) {}
Monitor::Watch::~Watch() {
  monitor_.impl_->unwatch(id_);
}

}  // namespace muster::collective
