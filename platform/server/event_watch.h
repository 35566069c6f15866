// GET /v1/watch/events: the events of jobs as a stream, and how far it may be read.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "access/identity.h"
#include "api/wire.h"
#include "base/clock.h"
#include "control/controller.h"
#include "job/job.h"
#include "server/event_stream.h"
#include "server/sight.h"
#include "server/watch_filter.h"

namespace muster::server {

/// The time up to which all events of jobs are known and stored.
///
/// Events get increasing times when they are recorded, but the feed of changes reports them after
/// they are committed, job by job. A reader in between could see a newer event of one job before an
/// older event of another; so readers do not read past this time.
///
/// On the EventLoop's thread. One for all watchers, created before them: the feed calls it first.
class EventHorizon {
 public:
  /// The controller must outlive it.
  explicit EventHorizon(control::Controller& controller);

  /// The time of the last event that may be read.
  base::Time time();
  /// The changes up to there have no later events. REQUIRES: time() was called.
  const control::FeedPosition& position() const { return at_; }

 private:
  void look_at_all();
  void look_at_changes();

  control::Controller& controller_;
  control::FeedPosition at_;
  base::Time time_{};
  bool is_computed_ = false;  ///< time() was called
  std::shared_ptr<void> feed_watch_;
};

/// The events of the jobs that the caller sees, as server-sent events: one "event" for each line of
/// their histories, in the order of time, which is also the id.
///
/// A job's history contains only its last events; a reader that is slower misses some, and those of
/// jobs that were deleted in between.
///
/// A stream that begins in the past examines all jobs. Few of them are unpacked in one turn of the
/// loop, and none stays unpacked. From then on it examines only jobs that change, unless it is so slow
/// that the feed of changes has forgotten some of them.
///
/// One "ready" is sent: at first, or after the events of the past if the stream begins there.
///
/// On the EventLoop's thread.
class EventWatchStream : public EventStream {
 public:
  struct Start {
    WatchFilter filter;
    /// The id of a job: only its events, and an "end" with the job when it has ended.
    std::optional<std::string> job;
    std::optional<base::Time> after;  ///< only later events; nothing: only future events
    std::string kind;                 ///< of their facts; empty: all
  };

  /// Controller and horizon must outlive it.
  EventWatchStream(StreamLife life, control::Controller& controller,
                   std::shared_ptr<EventHorizon> horizon, access::Identity who, Start start);

  /// How often it has begun to examine all jobs.
  int scans() const { return scans_; }

 protected:
  std::optional<http::BodyPiece> next() override;

 private:
  /// The examination of all jobs, over several turns of the loop.
  struct Scan {
    base::Time horizon;  ///< at its beginning
    control::FeedPosition began;
    std::optional<base::Time> examined;  ///< all jobs submitted up to then were examined
    /// The first events after last_ in these jobs, as a heap with the latest on top.
    std::vector<api::JobEvent> first;
  };

  bool find_some(const Sight& sight, base::Time horizon, std::vector<api::JobEvent>& found);
  bool scan_some(const Sight& sight);
  bool find_in_changed(const Sight& sight, base::Time horizon, std::vector<api::JobEvent>& found);
  bool may_have_events(const Sight& sight, const job::JobFacts& job) const;
  static bool is_too_late(const std::vector<api::JobEvent>& first, const job::JobFacts& job);
  void add_first(std::string_view id, base::Time horizon, std::vector<api::JobEvent>& first) const;
  using Take = std::function<bool(const job::Job& job, const job::Event& event)>;
  void find_in(std::string_view id, base::Time horizon, const Take& take) const;
  bool append_ready(std::string& text);
  std::optional<http::BodyPiece> end_if_over(const Sight& sight);

  control::Controller& controller_;
  std::shared_ptr<EventHorizon> horizon_;
  access::Identity who_;
  Start start_;
  base::Time last_;         ///< all events up to it were sent or are hidden
  bool caught_up_ = false;  ///< only jobs that change after at_ can have later events
  control::FeedPosition at_;
  std::optional<Scan> scan_;
  int scans_ = 0;
  bool is_ready_ = false;  ///< "ready" was sent
  bool ended_ = false;
  std::shared_ptr<void> feed_watch_;
};

}  // namespace muster::server
