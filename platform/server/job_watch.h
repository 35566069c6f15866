// The jobs that somebody sees, and then each change of them, as server-sent events: "job" for each
// as it is, "ready" when all were sent, then "job" and "removed" as they come. However many changes
// a slow reader is behind, it is sent the last state of each job, and nothing is kept for it.
//
// On the EventLoop's thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "access/identity.h"
#include "control/controller.h"
#include "server/event_stream.h"
#include "server/watch_filter.h"

namespace muster::server {

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
