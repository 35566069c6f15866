// What happens to the jobs that somebody sees, as server-sent events: one "event" for each line of
// their histories, in the order of time, which is its id as well.
//
// A job's history is kept as far as its last events; a reader that is slower than that misses some.
//
// On the EventLoop's thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "access/identity.h"
#include "control/controller.h"
#include "server/event_horizon.h"
#include "server/event_stream.h"
#include "server/watch_filter.h"

namespace muster::server {

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

}  // namespace muster::server
