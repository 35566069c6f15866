// Up to which time all events of jobs are known and kept.
//
// Events are noted one after the other, each with a later time than all before, and are told once
// they are committed, by the feed of changes, job by job. Whoever reads them in between could see a
// job's newest before an older one of another job that is yet to be told; so nobody reads past this
// time.
//
// On the EventLoop's thread. One for all watchers, made before them: the feed calls it first.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "access/identity.h"
#include "base/clock.h"
#include "base/result.h"
#include "control/controller.h"
#include "http/message.h"
#include "job/job.h"
#include "server/event_stream.h"
#include "server/sight.h"

namespace muster::server {

class EventHorizon {
 public:
  /// The controller must outlive it.
  explicit EventHorizon(control::Controller& controller);

  /// Of the events there are, the last that may be read.
  base::Time time();

 private:
  void look_at_all();
  void look_at_changes();

  control::Controller& controller_;
  control::FeedPosition at_;
  base::Time time_{};
  bool known_ = false;  ///< asked for at all
  std::shared_ptr<void> feed_watch_;
};

// Which jobs a watcher asked for.
//
// Plain values.

struct WatchFilter {
  std::optional<std::string> project;
  std::optional<std::string> name;

  bool takes(const std::string& of_project, const std::string& of_name) const {
    return (!project || *project == of_project) && (!name || *name == of_name);
  }
  /// And the caller sees it.
  bool takes(const Sight& sight, const job::Job& job) const {
    return takes(job.spec.project, job.spec.name) && sight.sees(job);
  }
};

// What happens to the jobs that somebody sees, as server-sent events: one "event" for each line of
// their histories, in the order of time, which is its id as well.
//
// A job's history is kept as far as its last events; a reader that is slower than that misses some.
//
// On the EventLoop's thread.

class EventWatch : public EventStream {
 public:
  struct Start {
    WatchFilter filter;
    /// The id of a job: only its events, and an "end" with the job when it has ended.
    std::optional<std::string> job;
    std::optional<base::Time> after;  ///< only later events; nothing: those to come
  };

  /// Controller and horizon must outlive it.
  EventWatch(StreamLife life, control::Controller& controller,
             std::shared_ptr<EventHorizon> horizon, access::Identity who, Start start);

 protected:
  std::optional<http::BodyPiece> next() override;

 private:
  struct Found {
    base::Time time;
    const job::Job* job = nullptr;
    const job::Event* event = nullptr;
  };

  std::vector<Found> find_some(const Sight& sight, base::Time horizon);
  std::vector<Found> find_in_all(const Sight& sight, base::Time horizon);
  bool find_in_changed(const Sight& sight, base::Time horizon, std::vector<Found>& found);
  void find_in(const Sight& sight, const job::Job& job, base::Time horizon,
               std::vector<Found>& found) const;
  std::optional<http::BodyPiece> end_if_over(const Sight& sight);

  control::Controller& controller_;
  std::shared_ptr<EventHorizon> horizon_;
  access::Identity who_;
  Start start_;
  base::Time last_;         ///< all up to it was sent, or is not shown
  bool caught_up_ = false;  ///< only what changes after at_ can have later ones
  control::FeedPosition at_;
  bool told_where_;  ///< the client knows an id to go on from
  bool ended_ = false;
  std::shared_ptr<void> feed_watch_;
};

// The jobs that somebody sees, and then each change of them, as server-sent events: "job" for each
// as it is, "ready" when all were sent, then "job" and "removed" as they come. However many changes
// a slow reader is behind, it is sent the last state of each job, and nothing is kept for it.
//
// On the EventLoop's thread.

class JobWatch : public EventStream {
 public:
  /// `from`: the last that was seen; nothing: begins with all jobs. The controller must outlive it.
  JobWatch(StreamLife life, control::Controller& controller, access::Identity who,
           WatchFilter filter, std::optional<control::FeedPosition> from);

 protected:
  std::optional<http::BodyPiece> next() override;

 private:
  void list_some(std::string& text);
  bool follow_some(std::string& text);
  void append_job(std::string& text, const Sight& sight, const job::Job& job,
                  const std::string& id) const;
  void append_change(std::string& text, const Sight& sight,
                     const control::ChangeFeed::Change& change) const;

  control::Controller& controller_;
  access::Identity who_;
  WatchFilter filter_;
  control::FeedPosition at_;
  bool listing_;
  std::optional<base::Time> listed_;  ///< up to the job that was submitted then
  std::shared_ptr<void> feed_watch_;
};

}  // namespace muster::server
