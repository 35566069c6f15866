// The implementation of the monitor, for its own sources: monitor.cc has the thread, failures and
// messages, monitor_probing.cc the search for the rank that blocks a call, and
// monitor_departures.cc the ranks that leave and the connections that are opened later.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "control/failure_detector.h"
#include "control/frame.h"
#include "control/lines.h"
#include "control/monitor.h"
#include "control/switchboard.h"
#include "transport/socket.h"

namespace muster::collective {

class Monitor::Impl {
 public:
  Impl(Monitor& monitor, MonitorOptions options, std::vector<Link> links, Switchboard* switchboard);
  ~Impl();

  Error failure() const;
  Error fail(Error error);
  int failure_descriptor() const { return failed_event_.get(); }

  std::uint64_t watch(std::string what);
  void renew(std::uint64_t id);
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
  bool has_sent_goodbye(int rank) const;
  std::vector<int> departed_in_step() const;

 private:
  using Lock = std::unique_lock<std::mutex>;

  static std::string name_of(int rank, const std::string& host);
  static FailureDetector::Peer peer_of(const MonitorOptions& options, const Link& link);
  static FailureDetector patrol_of(const MonitorOptions& options, const std::vector<Link>& links,
                                   const Switchboard* switchboard);
  static void raise(const Descriptor& event);

  struct Watching {
    std::string what;
    std::chrono::milliseconds waited{0};
  };

  struct Kept {
    int from;
    Bytes payload;
  };

  struct Subscription {
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
  const Watching* longest_watch() const;
  void judge(const Watching* watching);
  std::optional<Error> silent(const std::string& what) const;
  void deliver();
  void announce_failure();
  void send_farewell();
  void send_goodbye();

  // These functions require the lock.
  Deadline next_time() const;
  std::string host_of(int rank) const;
  bool has_undelivered(int from) const;
  Error fail_locked(Error error);
  void fail_of_longer_message(std::size_t bytes);
  void post(int to, Bytes frame);
  void send_to_line(std::size_t index, Bytes frame);
  void ask(const std::vector<int>& ranks);
  Bytes sign_of_life(FrameKind kind) const;

  // Probing.
  bool patrols() const { return !failure_ && (!watches_.empty() || reach_for_others_ > 0); }
  int reach() const;
  void begin_patrol();
  void probe_for_others(int reach);
  void ask_all_ranks_for_calls();

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
  const std::chrono::milliseconds tick_;
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
  std::map<Topic, Subscription> subscriptions_;
  bool waking_ = false;      // a function of wakes_ is running
  bool delivering_ = false;  // a handler of subscriptions_ is running
  int delivering_from_ = 0;  // the sender of its message
  bool stopping_ = false;
  Deadline last_tick_ = {};

  int reach_for_others_ = 0;  // of the last probe on behalf of others
  Deadline probes_for_others_until_ = {};
  bool asks_all_ = false;
  int next_to_ask_ = 0;

  std::map<int, std::uint64_t> departures_;  // calls of the ranks that sent a goodbye, by rank
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

}  // namespace muster::collective
