// GET /v1/watch/jobs: jobs, arrays, sweeps and schedules as a stream of changes.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "access/identity.h"
#include "base/clock.h"
#include "control/controller.h"
#include "control/sweeps.h"
#include "job/job.h"
#include "server/event_stream.h"
#include "server/sight.h"
#include "server/watch_filter.h"

namespace muster::server {

/// The jobs that the caller sees, and then each change, as server-sent events: "job" for each job,
/// "ready" when all were sent, then "job" and "removed" as they occur. However many changes a slow
/// reader is behind, it gets only the last state of each job, and nothing is stored for it.
///
/// On the EventLoop's thread.
class JobWatchStream : public EventStream {
 public:
  /// Start::from: the last id that the client saw; nothing: begins with all jobs. The controller
  /// must outlive it.
  struct Start {
    WatchFilter filter;
    std::optional<control::FeedPosition> from;
    bool begins_ready = false;  ///< first a "ready" event with the position, without the jobs
    bool as_rows = false;       ///< "row" events with rows, instead of "job" events with jobs
  };
  JobWatchStream(StreamLife life, control::Controller& controller, access::Identity who,
                 Start start);

 protected:
  std::optional<http::BodyPiece> next() override;

 private:
  void list_some(std::string& text);
  bool follow_some(std::string& text);
  void append_job(std::string& text, const Sight& sight, const job::Job& job,
                  const std::string& id) const;
  void append_object(std::string& text, const Sight& sight, const std::string& object,
                     const std::string& id) const;
  void append_array(std::string& text, const Sight& sight, const control::ArrayFacts& array,
                    const std::string& id) const;
  void append_sweep(std::string& text, const Sight& sight, const sweep::SweepSummary& sweep,
                    const std::string& id) const;
  void append_schedule(std::string& text, const Sight& sight, const job::Schedule& schedule,
                       const std::string& id) const;
  void append_change(std::string& text, const Sight& sight,
                     const control::ChangeFeed::Change& change) const;

  control::Controller& controller_;
  access::Identity who_;
  WatchFilter filter_;
  bool as_rows_;
  control::FeedPosition at_;
  bool listing_;
  bool begins_ready_;
  std::optional<base::Time> listed_;  ///< all jobs submitted up to then were listed
  std::shared_ptr<void> feed_watch_;
};

}  // namespace muster::server
